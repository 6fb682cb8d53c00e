//go:build linux

package soak

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
)

// The ledger is compared with the outcomes that clients know.
func TestLedger(t *testing.T) {
	for _, row := range []struct {
		name     string
		outcomes []outcome
		ledger   string
		faults   int
	}{
		{"all is well", []outcome{executed, unknown, unknown, unsent}, "k0. k1.", 0},
		{"executed twice", []outcome{unknown}, "k0. k0.", 1},
		{"a result without execution", []outcome{executed}, "", 1},
		{"executed, and said not to be", []outcome{unsent}, "k0.", 1},
		{"executed, and never sent", []outcome{unknown}, "k1. x", 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger")
			testkit.Check(t, os.WriteFile(path, []byte(strings.ReplaceAll(row.ledger, " ", "\n")), 0o600))
			a := newAccount(io.Discard)
			a.outcomes = row.outcomes
			if _, err := a.checkLedger(path); err != nil || len(a.faults) != row.faults {
				t.Errorf("%q, %v", a.faults, err)
			}
		})
	}
}

// An error is excused while a place is down, and until the client has an answer from it again.
func TestPlaceExcuses(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	c, other := &client{}, &client{}
	p := &place{deaths: []*death{{from: at(10), ready: at(20), recovered: map[any]time.Time{}}}}
	p.answered(c, at(15), at(16)) // by the old process
	p.answered(c, at(25), at(30))
	p.answered(c, at(35), at(40))
	for _, row := range []struct {
		client     *client
		start, end int
		want       bool
	}{
		{c, 5, 9, false},
		{c, 5, 10, true},
		{c, 15, 16, true},
		{c, 29, 50, true},
		{c, 31, 32, false},
		{other, 50, 51, true},
	} {
		if got := p.excuses(row.client, at(row.start), at(row.end)); got != row.want {
			t.Errorf("from %d to %d: %v", row.start, row.end, got)
		}
	}
}

// A client checks its answers.
func TestDo(t *testing.T) {
	const text = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"k%d. 7 %s"}]}}`
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`
	own := fmt.Sprintf(text, 1, filler(3))
	for _, row := range []struct {
		name   string
		answer string
		err    error
		dead   bool
		faults int
	}{
		{"its result", own, nil, false, 0},
		{"another's result", fmt.Sprintf(text, 2, filler(3)), nil, false, 1},
		{"half of its result", fmt.Sprintf(text, 1, filler(2)), nil, false, 1},
		{"under another id", strings.Replace(own, `"id":1`, `"id":2`, 1), nil, false, 1},
		{"not JSON", own[:9], nil, false, 1},
		{"an error", refusal, nil, false, 1},
		{"an error while the server is down", refusal, nil, true, 0},
		{"nothing", "", errLost, false, 1},
		{"nothing while the server is down", "", errLost, true, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := newAccount(io.Discard)
			c := &client{run: &run{account: a}, rng: rand.New(rand.NewPCG(1, 1)), server: &place{}, link: fixedLink{[]byte(row.answer), row.err}}
			if row.dead {
				c.server.die()
			}
			a.next()
			c.do(t.Context(), c.call(toolCount, 3))
			if len(a.faults) != row.faults {
				t.Errorf("%q", a.faults)
			}
		})
	}
}

// A fixedLink is a link that gives every request the same answer.
type fixedLink struct {
	line []byte
	err  error
}

func (a fixedLink) call(context.Context, *request) ([]byte, error) { return a.line, a.err }
func (fixedLink) notify(context.Context, []byte) error             { return nil }
func (fixedLink) end(bool) error                                   { return nil }

// The first third of the samples does not count.
func TestSlope(t *testing.T) {
	var all []sample
	for i := range 30 {
		bytes := 1000.0
		if i >= 10 {
			bytes = 5000 + 3*float64(2*i)
		}
		all = append(all, sample{time.Duration(2*i) * time.Second, bytes})
	}
	if got := slope(all); got < 2.99 || got > 3.01 {
		t.Errorf("%v bytes a second", got)
	}
	if got := slope(all[:1]); got != 0 {
		t.Errorf("of one sample: %v", got)
	}
}
