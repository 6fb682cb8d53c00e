package remote_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Stop ends a session whose server does not answer, and sends it a DELETE.
func TestStopEndsHangingCalls(t *testing.T) {
	t.Parallel()
	l := &legacy{}
	called, release := make(chan struct{}), make(chan struct{})
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method != "tools/call" {
			return false
		}
		close(called)
		<-release
		return true
	}
	c := l.open(t)
	t.Cleanup(func() { close(release) })
	c.send(call)
	<-called
	c.close()
	if err := c.s.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if ended := l.seen(http.MethodDelete); len(ended) != 1 || ended[0].session() != "session-1" {
		t.Errorf("ended: %v", ended)
	}
}

// The end does not wait for the answer of a cancelled request: a server need not send one.
func TestStopForgetsCancelledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := make(chan struct{})
		c := connectInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			switch body, _ := io.ReadAll(r.Body); {
			case strings.Contains(string(body), "tools/call"):
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			case strings.Contains(string(body), "notifications/cancelled"):
				w.WriteHeader(http.StatusAccepted)
				close(told)
			}
		})
		c.send(call)
		synctest.Wait()
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		<-told
		began := time.Now()
		c.close()
		if took := time.Since(began); took >= time.Second {
			t.Errorf("Stop took %v", took)
		}
	})
}

// An answer that arrives within the grace period is delivered.
func TestStopWaitsForLastAnswers(t *testing.T) {
	l := &legacy{}
	called := make(chan struct{})
	stopping := make(chan struct{})
	l.answer = func(w http.ResponseWriter, r request) bool {
		if r.method == "tools/call" {
			close(called)
			<-stopping
		}
		return false
	}
	c := l.open(t)
	c.send(call)
	<-called
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.s.Stop()
	}()
	c.s.Stdin().Close()
	close(stopping)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("Stop does not return")
	}
}

// A second initialize opens a new session and ends the first.
func TestSecondInitialize(t *testing.T) {
	l := &legacy{}
	c := l.open(t)
	c.send(initialize)
	c.expect(agreed)
	c.send(initialized)
	c.send(call)
	c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`)
	c.close()
	for _, r := range l.seen("initialize") {
		if r.session() != "" {
			t.Errorf("initialize was sent in %s", r.session())
		}
	}
	if ended := l.seen(http.MethodDelete); len(ended) != 2 {
		t.Errorf("ended: %v", ended)
	}
}

// Stop ends a session whose server does not even answer initialize: later messages wait for that
// answer, and Stop must not.
func TestStopEndsUnansweredInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connectInMemory(t, func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		c.send(initialize)
		c.send(initialized)
		began := time.Now()
		c.close()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("Stop took %v", took)
		}
	})
}
