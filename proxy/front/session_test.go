package front

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
)

// A session that has ended has no running timer, which would keep its memory.
func TestEndedSessionHasNoTimer(t *testing.T) {
	f := New(Options{Open: func(Opening) (Relay, error) {
		return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
			return mempipe.NewServer(0), nil
		}}}, nil
	}})
	s, err := f.create("", Principal{}, "")
	if err != nil {
		t.Fatal(err)
	}
	s.end("the test ends it")
	f.relays.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer.Stop() {
		t.Error("the timer was still running")
	}
}
