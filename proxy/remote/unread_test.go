package remote_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Only the server can answer a request with an ambiguous id. Its answer reaches the client as JSON
// and as an event (row F11 of the transport's list of cases).
func TestF11UnreadIDs(t *testing.T) {
	for _, id := range []string{`"id":1.0`, `"id":1.5`, `"id":1e2`, `"id":12.0`, `"id":7,"id":7`} {
		for _, kind := range []string{asJSON, "text/event-stream"} {
			t.Run(id+" "+kind, func(t *testing.T) {
				answer := `{"jsonrpc":"2.0",` + id + `,"result":{}}`
				l := &legacy{}
				l.answer = func(w http.ResponseWriter, r request) bool {
					if r.method != "ping" {
						return false
					}
					w.Header().Set("Content-Type", kind)
					if kind == asJSON {
						io.WriteString(w, answer)
					} else {
						io.WriteString(w, "data: "+answer+"\n\n")
					}
					return true
				}
				c := l.open(t)
				c.send(`{"jsonrpc":"2.0",` + id + `,"method":"ping"}`)
				c.expect(answer)
				c.send(call)
				c.expect(`{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`)
				c.close()
				if strings.Contains(c.log.String(), "level=WARN") {
					t.Errorf("logged:\n%s", c.log)
				}
			})
		}
	}
}

// attache waits for a slow answer to such a request; it does not take it for a notification.
func TestF11UnreadIDsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const answer = `{"jsonrpc":"2.0","id":1.5,"result":{}}`
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.method != "ping" {
				return false
			}
			w.Header().Set("Content-Type", "text/event-stream")
			http.NewResponseController(w).Flush()
			time.Sleep(time.Minute)
			io.WriteString(w, "data: "+answer+"\n\n")
			return true
		}
		c := l.openInMemory(t)
		c.send(`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`)
		c.expect(answer)
		c.close()
	})
}

// A missing answer is logged, since attache cannot answer such a request.
func TestF11UnreadIDsUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.method == "ping" {
				w.WriteHeader(http.StatusAccepted)
			}
			return r.method == "ping"
		}
		c := l.openInMemory(t)
		c.send(`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`)
		synctest.Wait()
		c.close()
		if !strings.Contains(c.log.String(), "did not answer a message whose id cannot be read") {
			t.Errorf("logged:\n%s", c.log)
		}
	})
}
