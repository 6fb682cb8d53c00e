package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// TestStress has many calls in flight, layers that suspend, answer, edit and ask, a server that
// answers in random order, and cancelled calls. Each call gets exactly one answer, or at most one
// if it was cancelled.
func TestStress(t *testing.T) {
	runStress(t, proxytest.Setup{PipeSize: pipeSize}, func(*proxytest.Session, int) {})
}

// A server that stops reading answers the calls that it has read. attache answers the others: those
// that are in the pipe when the server ends, so the client has to read until then.
func TestStressServerStopsReading(t *testing.T) {
	setup := proxytest.Setup{PipeSize: pipeSize, ClientReads: true}
	runStress(t, setup, func(s *proxytest.Session, seen int) {
		if seen == 700 {
			s.Server.CloseInput()
		}
	})
}

// If the server dies, every call in flight gets exactly one answer. The clock is fake, because a session
// has a second to answer them all, and a busy machine may need more under -race.
func TestStressServerDies(t *testing.T) {
	for dies := range 20 {
		synctest.Test(t, func(t *testing.T) { stressServerDies(t, 100+dies) })
	}
}

// stressServerDies sends calls to a server that dies after a number of lines.
func stressServerDies(t *testing.T, dies int) {
	s, answers := startStress(t, proxytest.Setup{})
	go stressServer(s, func(s *proxytest.Session, seen int) {
		if seen == dies {
			s.Exit(errors.New("exit status 1"))
		}
	})
	const sent = 1000
	for sent := range sent {
		s.Client.Send(`{"jsonrpc":"2.0","id":` + fmt.Sprint(sent) + `,"method":"tools/call","params":{"name":"plain"}}`)
	}
	s.Wait()
	got := countAnswers(answers)
	last := -1
	for i := range sent {
		if got[fmt.Sprint(i)] == 1 {
			last = i
		}
	}
	for i := range last {
		if n := got[fmt.Sprint(i)]; n != 1 {
			t.Fatalf("call %d has %d answers, although the later call %d has one", i, n, last)
		}
	}
}

// startStress starts a session and collects the lines that the client gets.
func startStress(t *testing.T, setup proxytest.Setup) (*proxytest.Session, <-chan string) {
	setup.Options = proxy.Options{InFlight: 50, Layers: []middleware.Layer{hookLayer(), stressLayer()}}
	s := setup.Start(t)
	answers := make(chan string, 10_000)
	go func() {
		defer close(answers)
		in, _ := s.Client.Raw()
		for line := range lines(in) {
			answers <- line
		}
	}()
	return s, answers
}

// runStress sends calls of all kinds. It calls meanwhile after each line that the server reads,
// with the number of lines read.
func runStress(t *testing.T, setup proxytest.Setup, meanwhile func(s *proxytest.Session, seen int)) {
	const calls = 3000
	s, answers := startStress(t, setup)
	go stressServer(s, meanwhile)
	r := rand.New(rand.NewPCG(1, 2))
	cancelled := map[string]bool{}
	for i := range calls {
		id := fmt.Sprint(i)
		s.Client.Send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + stressTools[r.IntN(len(stressTools))] + `"}}`)
		if r.IntN(10) == 0 {
			cancelled[id] = true
			s.Client.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
		}
	}
	s.Client.Send(`{"jsonrpc":"2.0","method":"done"}`)
	s.Client.Close()
	s.Wait()
	checkAnswers(t, calls, cancelled, answers)
}

var stressTools = []string{"plain", "plain", "plain", "hold", "answer", "hold-reply", "ask"}

func checkAnswers(t *testing.T, calls int, cancelled map[string]bool, answers <-chan string) {
	t.Helper()
	got := countAnswers(answers)
	for i := range calls {
		id := fmt.Sprint(i)
		if n := got[id]; n != 1 && !(n == 0 && cancelled[id]) {
			t.Errorf("call %s has %d answers (cancelled: %v)", id, n, cancelled[id])
		}
	}
}

// countAnswers counts the replies to each id.
func countAnswers(answers <-chan string) map[string]int {
	got := map[string]int{}
	for line := range answers {
		var m wire.Message
		m.Reset(wire.Server, []byte(line))
		if m.LookEnvelope(); m.Kind().IsReply() {
			got[string(m.ID())]++
		}
	}
	return got
}

// lines yields the lines of a stream until it ends.
func lines(in io.Reader) func(func(string) bool) {
	return func(yield func(string) bool) {
		r := wire.NewReader(in, 0)
		for {
			line, _, err := r.Next()
			if err != nil || !yield(string(line)) {
				return
			}
		}
	}
}

// stressServer answers in random order, with at most ten calls waiting, and all of them at the
// end of its input.
func stressServer(s *proxytest.Session, meanwhile func(s *proxytest.Session, seen int)) {
	r := rand.New(rand.NewPCG(3, 4))
	in, out := s.Server.Raw()
	var waiting []string
	reply := func() {
		i := r.IntN(len(waiting))
		io.WriteString(out, `{"result":{},"jsonrpc":"2.0","id":`+waiting[i]+"}\n")
		waiting = append(waiting[:i], waiting[i+1:]...)
	}
	seen := 0
	for line := range lines(in) {
		seen++
		meanwhile(s, seen)
		m := wire.Parse(wire.Client, []byte(line))
		switch {
		case m.MethodIs("tools/list"): // a request of attache itself, for which a call waits
			io.WriteString(out, `{"result":{},"jsonrpc":"2.0","id":`+string(m.ID())+"}\n")
		case m.Kind() == wire.Request:
			waiting = append(waiting, string(m.ID()))
		}
		for len(waiting) > 0 && (r.IntN(3) > 0 || len(waiting) > 10) {
			reply()
		}
	}
	for len(waiting) > 0 {
		reply()
	}
	s.Server.ExpectEOF() // after CloseInput, stay until the client has sent everything
	s.Exit(nil)
}

// stressLayer does one of the things that layers can do, chosen by the name of the tool.
func stressLayer() middleware.Layer {
	return layer("stress", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		switch m.Name().Text() {
		case "hold":
			call.Suspend(m, nil, time.Microsecond, next)
			return nil
		case "answer":
			return call.Answer(ctx, wire.ResultReply(m.ID(), []byte("{}")))
		case "hold-reply":
			call.OnReply(func(_ context.Context, reply *wire.Message) error {
				call.Suspend(reply, nil, time.Microsecond, func(_ context.Context, reply *wire.Message) error {
					return reply.Set([]byte("1"), "result", "held")
				})
				return nil
			})
		case "ask":
			ready := make(chan struct{})
			call.Ask(wire.Server, "tools/list", nil, time.Second, func(*wire.Message) { close(ready) })
			call.Suspend(m, ready, time.Second, next)
			return nil
		}
		return next(ctx, m)
	})
}
