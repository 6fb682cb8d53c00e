package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

type opener func(*client) (link, error)

// A client runs one session after the other: it opens a session, makes calls, and ends the session
// orderly or abruptly.
type client struct {
	kind   string // of client
	run    *run
	rng    *rand.Rand
	modern bool
	open   opener
	// The processes on the way: server is the client's own, and remote the server that others use
	// too; one of them is nil. front is nil on stdio.
	front, server, remote *place

	link   link
	pid    atomic.Int64 // of the server that answered last
	killed time.Time
	gone   atomic.Bool // the client has ended its link itself
}

func (c *client) session(ctx context.Context) {
	c.gone.Store(false)
	c.pid.Store(0)
	l, err := c.open(c)
	if err != nil {
		c.run.account.fault("%s: start: %v", c.kind, err)
		return
	}
	c.link = l
	ok := c.modern || c.begin(ctx)
	for ctx.Err() == nil && ok && c.rng.IntN(40) > 0 {
		ok = c.step(ctx)
		machine.Pause(ctx, time.Duration(c.rng.IntN(50))*time.Millisecond)
	}
	c.leave(ctx, ctx.Err() != nil || !ok || c.rng.IntN(2) == 0)
}

// leave ends the session. If not orderly, it does so while calls are running.
func (c *client) leave(ctx context.Context, orderly bool) {
	began := time.Now()
	end := func() {
		c.gone.Store(true)
		if err := c.link.end(orderly); err != nil && !c.excused(began, time.Now()) {
			c.run.account.fault("%s: end: %v", c.kind, err)
		}
	}
	if orderly {
		end()
	} else {
		c.duringCalls(ctx, toolCount, end)
	}
}

// duringCalls calls f a moment after it has started calls of a tool, and waits for the calls.
func (c *client) duringCalls(ctx context.Context, tool string, f func()) {
	wait := time.Duration(c.rng.IntN(10_000)) * time.Microsecond
	var calls sync.WaitGroup
	calls.Go(func() { c.burst(ctx, 5, tool, 100, false) })
	machine.Pause(ctx, wait)
	f()
	calls.Wait()
}

func (c *client) begin(ctx context.Context) bool {
	q := c.request("initialize", "", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"soak","version":"1"}`)
	if !c.do(ctx, q) || !q.succeeded {
		return false
	}
	err := c.link.notify(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	return err == nil || c.excused(q.start, time.Now())
}

// step makes one random step. It returns false if the session is over.
func (c *client) step(ctx context.Context) bool {
	switch n := c.rng.IntN(100); {
	case n < 55:
		return c.burst(ctx, 1+c.rng.IntN(8), toolCount, c.rng.IntN(400), false)
	case n < 65:
		return c.burst(ctx, 1+c.rng.IntN(3), toolCount, 1<<(14+c.rng.IntN(6)), c.rng.IntN(2) == 0)
	case n < 72:
		return c.burst(ctx, 1+c.rng.IntN(4), toolSlow, 100, false)
	case n < 79:
		return c.cancel(ctx)
	case n < 84:
		return c.do(ctx, c.request("tools/list", "", ""))
	case n < 88:
		return c.do(ctx, c.request("ping", "", ""))
	case n < 93:
		return c.do(ctx, c.request("resources/read", scheme+"KEY", `"uri":"`+scheme+`KEY"`))
	case n < 95:
		c.hold()
	case n < 97:
		c.duringCalls(ctx, toolSlow, c.kill)
	}
	return true
}

func (c *client) burst(ctx context.Context, n int, tool string, size int, slow bool) bool {
	var all sync.WaitGroup
	var failed atomic.Bool
	for range n {
		q := c.call(tool, size)
		q.slow = slow
		all.Go(func() {
			if !c.do(ctx, q) {
				failed.Store(true)
			}
		})
	}
	all.Wait()
	return !failed.Load()
}

// cancel makes a call that the server never answers, and cancels it.
func (c *client) cancel(ctx context.Context) bool {
	q := c.call(toolStuck, 0)
	calling, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan bool, 1)
	go func() { done <- c.do(calling, q) }()
	machine.Pause(ctx, time.Duration(c.rng.IntN(400))*time.Millisecond)
	q.cancelled.Store(true)
	if c.front == nil || !c.modern { // over HTTP, the end of its request cancels a modern call
		<-q.written // a notification before the request would cancel nothing
		_ = c.link.notify(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, q.id))
	}
	stop()
	return <-done
}

func (c *client) call(tool string, size int) *request {
	q := c.request("tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":{"key":"KEY","size":%d,"millis":%d}`, tool, size, c.rng.IntN(300)))
	q.size = size
	return q
}

// request returns a request with a new number. Half of the ids are strings. In name and params, KEY
// stands for the key, which must be in the result of a request that has a name.
func (c *client) request(method, name, params string) *request {
	n := c.run.account.next()
	q := &request{number: n, method: method, id: strconv.Itoa(n), written: make(chan struct{})}
	key := "k" + q.id + "."
	if name != "" {
		q.name, q.key = strings.ReplaceAll(name, "KEY", key), key
	}
	if n%2 == 0 {
		q.id = `"id-` + q.id + `"`
	}
	if c.modern { // no session: the conversation tells clients apart
		params = strings.TrimPrefix(params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+modernVersion+`","io.modelcontextprotocol/clientInfo":{"name":"soak","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"vscode.conversationId":"`+fmt.Sprintf("%p", c)+`"}`, ",")
	}
	q.body = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, q.id, method, strings.ReplaceAll(params, "KEY", key))
	return q
}

// do sends a request and checks the answer. It returns false if the session is over.
func (c *client) do(ctx context.Context, q *request) bool {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q.start = time.Now()
	b, err := c.link.call(limited, q)
	q.end = time.Now()
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		c.run.account.fault("%s: request %d (%s %s) had no answer within %v: %v", c.kind, q.number, q.method, q.name, patience, err)
		c.run.account.note(c.kind, q.number, "never answered", unknown)
		return false
	}
	if err != nil {
		return c.unanswered(ctx, q, err)
	}
	var m message
	if err := json.Unmarshal(b, &m); err != nil || string(m.ID) != q.id {
		c.run.account.fault("%s: request %d got the answer %.200q", c.kind, q.number, b)
		return false
	}
	if m.Error != nil {
		c.refused(q, &m)
		return true
	}
	q.succeeded = true
	o := unknown
	if q.method == "tools/call" {
		o = executed
	}
	c.run.account.note(c.kind, q.number, "result", o)
	c.check(q, m.Result)
	return true
}

// check compares a result with the one expected.
func (c *client) check(q *request, result []byte) {
	for _, p := range []*place{c.front, c.server, c.remote} {
		p.answered(c, q.start, q.end)
	}
	if q.key == "" {
		return
	}
	_, rest, found := bytes.Cut(result, []byte(`"`+q.key+` `))
	pid, text, _ := bytes.Cut(rest, []byte(" "))
	n, err := strconv.ParseInt(string(pid), 10, 64)
	if !found || err != nil || !bytes.HasPrefix(text, []byte(filler(q.size)+`"`)) {
		c.run.account.fault("%s: request %d got the result of another, or not all of its own: %.200q", c.kind, q.number, result)
		return
	}
	if c.server != nil {
		c.pid.Store(n)
	}
}

// refused checks that an error response is excused.
func (c *client) refused(q *request, m *message) {
	o, kind := unknown, "error: "+kindOf(m.Error.Message)
	if strings.Contains(m.Error.Message, "was not sent") {
		o = unsent
	}
	if q.cancelled.Load() {
		kind = "cancelled"
	} else if !c.excused(q.start, q.end) {
		c.run.account.fault("%s: request %d (%s %s) got an error though nothing was killed: %s", c.kind, q.number, q.method, q.name, m.Error.Message)
	}
	c.run.account.note(c.kind, q.number, kind, o)
}

// unanswered checks that the failure of a request is excused. It returns false if the session is over.
func (c *client) unanswered(ctx context.Context, q *request, err error) bool {
	kind := kindOf(err.Error())
	switch {
	case q.cancelled.Load():
		c.run.account.note(c.kind, q.number, "cancelled", unknown)
		return !errors.Is(err, errLost)
	case c.gone.Load() || ctx.Err() != nil:
		kind = errGone.Error()
	case !c.front.excuses(c, q.start, q.end):
		c.run.account.fault("%s: request %d (%s %s): %v, though nothing was killed that it was sent to", c.kind, q.number, q.method, q.name, err)
	}
	c.run.account.note(c.kind, q.number, kind, unknown)
	return !errors.Is(err, errLost)
}

func (c *client) excused(start, end time.Time) bool {
	return c.front.excuses(c, start, end) || c.server.excuses(c, start, end) || c.remote.excuses(c, start, end)
}

// killEvery is the least time between two kills of one client's server: a server that ends
// five times in a minute is not restarted.
const killEvery = 20 * time.Second

func (c *client) kill() {
	pid := int(c.pid.Load())
	if c.server == nil || time.Since(c.killed) < killEvery || !c.run.marked(pid) {
		return
	}
	c.killed = time.Now()
	c.run.account.count("servers killed")
	restarted := c.server.die()
	machine.Signal(pid, syscall.SIGKILL)
	restarted()
}

// hold suspends the client's server for a while, so that it reads and answers nothing.
func (c *client) hold() {
	pid := int(c.pid.Load())
	if c.server == nil || !c.run.marked(pid) {
		return
	}
	machine.Signal(pid, machine.Stop)
	c.run.account.count("servers stopped for a while")
	wait := time.Duration(100+c.rng.IntN(2000)) * time.Millisecond
	c.run.pending.Go(func() {
		time.Sleep(wait)
		if c.run.marked(pid) {
			machine.Signal(pid, machine.Continue)
		}
	})
}
