package access_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A lender keeps its buckets in memory.
type lender struct {
	wait    time.Duration // how long an answer takes
	answers int           // the number of answers before it fails

	mu     sync.Mutex
	fullAt map[sessionstate.Bucket]time.Time
	asked  int
	used   map[sessionstate.Bucket]int // tokens that were lent and not returned
	others int                         // the number of other processes that it reports
}

func newLender() *lender {
	return &lender{answers: 1 << 30, fullAt: map[sessionstate.Bucket]time.Time{}, used: map[sessionstate.Bucket]int{}}
}

func (l *lender) Lend(ctx context.Context, b sessionstate.Bucket, d sessionstate.Demand) (sessionstate.Loan, error) {
	select {
	case <-time.After(l.wait):
	case <-ctx.Done():
		return sessionstate.Loan{}, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked++; l.asked > l.answers {
		return sessionstate.Loan{}, errors.New("it is away")
	}
	now := time.Now()
	full := l.fullAt[b].Add(-time.Duration(d.Back) * b.Every)
	if full.Before(now) {
		full = now
	}
	n := min(d.Want, int((time.Duration(b.Burst)*b.Every-full.Sub(now))/b.Every))
	l.fullAt[b] = full.Add(time.Duration(n) * b.Every)
	l.used[b] += n - d.Back
	return sessionstate.Loan{Tokens: n, Full: l.fullAt[b].Sub(now), Processes: 1 + l.others, Counted: 1}, nil
}

// shared returns options with a rate whose tokens a lender lends, at most two at once.
func shared(l *lender, down access.Down) access.Options {
	return access.Options{
		Rates: []access.Rate{{Tools: []string{"*"}, Per: access.PerTenant, Limit: 60, Window: time.Minute, Burst: 20}},
		Down:  down, Limiters: &access.Limiters{Lender: l},
	}
}

// sharedOptions returns the options that the scripts name.
func sharedOptions() map[string]access.Options {
	slow, stuck, away, closed, gone := newLender(), newLender(), newLender(), newLender(), newLender()
	slow.wait, stuck.wait, stuck.others = time.Second/2, time.Hour, 9
	away.answers, away.others, closed.answers, gone.answers = 1, 9, 0, 0
	several := shared(newLender(), "")
	several.Rates = append(several.Rates, access.Rate{Tools: []string{"rare"}, Per: access.PerTool, Limit: 1, Window: time.Hour})
	return map[string]access.Options{
		"lender": shared(newLender(), ""), "several": several, "slow": shared(slow, ""), "stuck": shared(stuck, access.DownClosed),
		"away": shared(away, access.DownShare), "closed": shared(closed, access.DownClosed), "gone": shared(gone, ""),
	}
}

// A process is one of several that share rates.
type process struct {
	limiters *access.Limiters
	call     middleware.Handler
	allowed  int
}

// A blockingRelay suspends a call by blocking the goroutine of the caller.
type blockingRelay struct{ relayed.Relay }

func (blockingRelay) Answer(context.Context, *wire.Message) error { return nil }

func (b blockingRelay) Suspend(m *wire.Message, ready <-chan struct{}, limit time.Duration, resume relayed.Handler) {
	select {
	case <-ready:
	case <-time.After(limit):
	}
	call := new(relayed.Call)
	call.Reset(b, true)
	_ = resume(&relayed.Context{Context: context.Background(), Call: call}, m)
}

func newProcess(t *testing.T, l *lender, rate access.Rate) *process {
	t.Helper()
	p := &process{limiters: &access.Limiters{Lender: l}}
	s, err := access.Compile(access.Options{Rates: []access.Rate{rate}, Limiters: p.limiters})
	testkit.Check(t, err)
	p.call = s.Connect(access.ConnOptions{}).Layer().Wrap(func(context.Context, *wire.Message) error {
		p.allowed++
		return nil
	})
	return p
}

// try makes a call and reports whether it was allowed.
func (p *process) try(t *testing.T) bool {
	t.Helper()
	return p.tryTool(t, "x")
}

func (p *process) tryTool(t *testing.T, tool string) bool {
	t.Helper()
	call := new(relayed.Call)
	call.Reset(blockingRelay{}, true)
	before := p.allowed
	m := wire.NewMessage(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`"}}`))
	testkit.Check(t, p.call(&relayed.Context{Context: t.Context(), Call: call}, m))
	return p.allowed > before
}

// For an hour, several processes make calls, and some of them die. No interval has more calls than
// the limit plus the tokens that the processes may have borrowed before. If there are enough calls,
// nearly as many as the limit are allowed.
func TestProcessesShareRates(t *testing.T) {
	for _, rate := range []access.Rate{
		{Limit: 60, Window: time.Minute, Burst: 100},
		{Limit: 60, Window: time.Minute, Burst: 1},
		{Limit: 7, Window: time.Hour},
		{Limit: 5, Window: time.Second, Burst: 200},
	} {
		rate.Tools, rate.Per = []string{"*"}, access.PerTenant
		most := float64(rate.Limit) / rate.Window.Seconds()
		burst := max(rate.Burst, 1)
		if rate.Burst == 0 {
			burst = rate.Limit
		}
		chunk := max(min(int(10*most), burst/10), 1)
		t.Run(fmt.Sprint(rate.Limit, " in ", rate.Window, ", burst ", burst), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const processes = 4
				l, random := newLender(), rand.New(rand.NewPCG(13, 8))
				var all []*process
				for range processes {
					all = append(all, newProcess(t, l, rate))
				}
				var calls []time.Time
				start := time.Now()
				for time.Since(start) < time.Hour {
					i := random.IntN(processes)
					switch {
					case all[i].try(t):
						calls = append(calls, time.Now())
					case random.IntN(1000) == 0: // the process dies, and another one starts
						all[i] = newProcess(t, l, rate)
					}
					time.Sleep(time.Duration(random.Float64() * float64(time.Second) / most)) // twice the limit
				}
				for i := 0; i < len(calls); i += 1 + len(calls)/500 {
					for j := i; j < len(calls); j++ {
						if n := most*calls[j].Sub(calls[i]).Seconds() + float64(burst+processes*chunk); float64(j-i+1) > n+1e-6 {
							t.Fatalf("%d calls in %v, want %.1f at most", j-i+1, calls[j].Sub(calls[i]), n)
						}
					}
				}
				if least := most*3600*0.9 - 1; burst > 1 && float64(len(calls)) < least { // a bucket of one is often full
					t.Errorf("%d calls in an hour, want %.0f at least", len(calls), least)
				}
			})
		})
	}
}

// A process with many calls asks seldom, and one with few calls keeps no tokens from others.
func TestLoansGrow(t *testing.T) {
	rate := access.Rate{Tools: []string{"*"}, Per: access.PerTenant, Limit: 600, Window: time.Minute}
	synctest.Test(t, func(t *testing.T) {
		l := newLender()
		p := newProcess(t, l, rate)
		for range 200 {
			if !p.try(t) {
				t.Fatal("a call under the limit is refused")
			}
		}
		if l.asked > 10 {
			t.Errorf("200 calls at once asked %d times, want 10 at most", l.asked)
		}
		time.Sleep(time.Minute)
		l.asked = 0
		for range 20 {
			if !p.try(t) {
				t.Fatal("a call under the limit is refused")
			}
			time.Sleep(11 * time.Second)
		}
		if l.asked != 20 || l.lent() != 220 {
			t.Errorf("20 calls with time between them asked %d times and keep %d tokens, want 20 and none", l.asked, l.lent()-220)
		}
	})
}

// lent returns the number of tokens that were lent and not returned.
func (l *lender) lent() (n int) {
	for _, u := range l.used {
		n += u
	}
	return n
}

// A process that ends returns its unspent tokens, unless the lender does not answer.
func TestTokensAreReturned(t *testing.T) {
	rate := access.Rate{Tools: []string{"*"}, Per: access.PerTenant, Limit: 600, Window: time.Minute}
	for name, test := range map[string]struct {
		answers, want int
	}{"answers": {100, 4}, "fails": {3, 7}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLender()
				l.answers = test.answers
				p := newProcess(t, l, rate)
				for range 4 { // which borrow 1, 2 and 4
					p.try(t)
				}
				p.limiters.Close(t.Context())
				p.limiters.Close(t.Context())
				if n := l.lent(); n != test.want {
					t.Errorf("%d tokens are lent after %d calls, want %d", n, p.allowed, test.want)
				}
			})
		})
	}
	new(access.Limiters).Close(t.Context())
}

// The unspent tokens of every bucket are returned.
func TestTokensOfAllBucketsAreReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLender()
		p := newProcess(t, l, access.Rate{Tools: []string{"*"}, Per: access.PerTool, Limit: 600, Window: time.Minute})
		for _, tool := range []string{"a", "b", "c"} {
			for range 4 { // which borrow 1, 2 and 4
				p.tryTool(t, tool)
			}
		}
		p.limiters.Close(t.Context())
		if n := l.lent(); n != p.allowed {
			t.Errorf("%d tokens are lent after %d calls", n, p.allowed)
		}
	})
}

// A process whose bucket is empty does not ask again before the next token is there, and then it does.
func TestEmptyBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := access.Rate{Tools: []string{"*"}, Per: access.PerTenant, Limit: 6, Window: time.Minute, Burst: 5}
		l := newLender()
		other, p := newProcess(t, l, rate), newProcess(t, l, rate)
		for other.try(t) {
		}
		l.asked = 0
		for range 9 { // the next token is there after 10 s
			if p.try(t) {
				t.Fatal("a call over the limit is allowed")
			}
			time.Sleep(time.Second)
		}
		if l.asked != 1 {
			t.Errorf("the lender was asked %d times, want once", l.asked)
		}
		time.Sleep(2 * time.Second)
		if !p.try(t) {
			t.Error("a call under the limit is refused")
		}
	})
}

// Names that a client invents create a bounded number of buckets.
func TestSharedBucketsAreBounded(t *testing.T) {
	const most = 10_000
	synctest.Test(t, func(t *testing.T) {
		l := newLender()
		p := newProcess(t, l, access.Rate{Tools: []string{"*"}, Per: access.PerTool, Limit: 2, Window: time.Minute})
		for i := range most + 100 {
			p.tryTool(t, fmt.Sprint("made up ", i))
		}
		if len(l.used) != most+1 || p.allowed != most+2 {
			t.Errorf("%d buckets, %d calls allowed; want %d and %d: the last share one", len(l.used), p.allowed, most+1, most+2)
		}
		time.Sleep(2 * time.Minute)
		p.tryTool(t, "new")
		if len(l.used) != most+2 {
			t.Errorf("%d buckets, want one more once the others are full again", len(l.used))
		}
	})
}

// Different rates, servers and keys have buckets with different names.
func TestBucketNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLender()
		base := access.Rate{Tools: []string{"*"}, Per: access.PerTool, Limit: 60, Window: time.Minute}
		tools, limit, window, burst := base, base, base, base
		tools.Tools, limit.Limit, window.Window, burst.Burst = []string{"x"}, 30, time.Hour, 5
		for _, o := range []struct {
			server string
			rates  []access.Rate
		}{{"", []access.Rate{base, base, tools, limit, window, burst}}, {"git", []access.Rate{base}}, {"", []access.Rate{base}}} {
			p := &process{limiters: &access.Limiters{Lender: l}}
			s, err := access.Compile(access.Options{Rates: o.rates, Server: o.server, Limiters: p.limiters})
			testkit.Check(t, err)
			p.call = s.Connect(access.ConnOptions{}).Layer().Wrap(func(context.Context, *wire.Message) error { p.allowed++; return nil })
			if !p.try(t) {
				t.Error("a call is refused")
			}
		}
		var names []string
		for b := range l.used {
			names = append(names, b.Name)
		}
		slices.Sort(names)
		if n := len(slices.Compact(names)); n != 7 || l.asked != 8 {
			t.Errorf("%d buckets were asked for %d times, want 7 and 8: the last process shares one of the first", n, l.asked)
		}
	})
}
