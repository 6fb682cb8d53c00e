package front

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/sessions"
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

// A slowStore answers Take when the gate has an element.
type slowStore struct {
	*memoryStore
	gate chan struct{}
}

func (s slowStore) Take(ctx context.Context, k sessions.Key) (sessions.Session, error) {
	<-s.gate
	return s.memoryStore.Take(ctx, k)
}

// A session that its client ends while it is being continued here is over.
func TestDeleteWhileResuming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := sessions.NewID()
		store := slowStore{&memoryStore{own: map[sessions.Key]bool{}, saved: map[sessions.Key]sessions.Session{
			sessions.NewKey(id, ""): {Initialize: `{}`, Version: `"2025-06-18"`, Capabilities: `{}`},
		}}, make(chan struct{})}
		f := New(Options{Store: store, Open: func(Opening) (Relay, error) {
			return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
				return countingServer(new(atomic.Int32)), nil
			}}}, nil
		}})
		defer f.Drain(t.Context())
		go f.lookup(t.Context(), id, Principal{}, "")
		synctest.Wait()
		var known bool
		go func() { known, _ = f.forget(t.Context(), id, Principal{}) }()
		synctest.Wait()
		store.gate <- struct{}{} // for the request, which came first
		synctest.Wait()
		close(store.gate)
		synctest.Wait()
		if s := f.find(id, Principal{}); !known || s != nil {
			t.Errorf("the session was known: %v, and goes on: %v", known, s != nil)
		}
	})
}
