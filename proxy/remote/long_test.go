package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/remote"
)

const (
	longFrame = 128 << 20 // the size of frames that must not be held in memory
	maxMemory = 40 << 20  // the memory that may be used for such a frame
)

// measureMemory samples the memory in use until the returned function is called. That
// function returns by how much the memory has grown at most.
func measureMemory() func() uint64 {
	use := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	runtime.GC()
	before, most := use(), uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			most = max(most, use())
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		if most < before {
			return 0
		}
		return most - before
	}
}

// writeLetters writes n letters.
func writeLetters(w io.Writer, n int) {
	part := bytes.Repeat([]byte("x"), 64<<10)
	for ; n > 0; n -= len(part) {
		w.Write(part[:min(n, len(part))])
	}
}

// startUnread starts a session whose output the test reads itself.
func startUnread(t *testing.T, handler http.HandlerFunc) (*remote.Server, io.Reader) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s, err := remote.Start(remote.Options{URL: server.URL})
	testkit.Check(t, err)
	t.Cleanup(s.Stop)
	return s, s.Stdout()
}

// TestLongAnswersAreNotHeld checks that an answer of longFrame bytes is not held in memory.
func TestLongAnswersAreNotHeld(t *testing.T) {
	const head, tail = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`, `"}]}}`
	for kind, around := range map[string][2]string{asJSON: {"", "\n"}, asEvents: {"event: message\ndata: ", "\n\n"}} {
		t.Run(kind, func(t *testing.T) {
			s, lines := startUnread(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				io.WriteString(w, around[0]+head)
				writeLetters(w, longFrame)
				io.WriteString(w, tail+around[1])
			})
			grown := measureMemory()
			io.WriteString(s.Stdin(), call+"\n")
			n, last := int64(0), []byte(nil)
			for part := make([]byte, 64<<10); !bytes.HasSuffix(last, []byte("\n")); {
				got, err := lines.Read(part)
				testkit.Check(t, err)
				n += int64(got)
				last = append(last[:0], part[:got]...)
			}
			if most := grown(); most > maxMemory {
				t.Errorf("the memory grew by %d MiB", most>>20)
			}
			if want := int64(len(head) + longFrame + len(tail) + 1); n != want {
				t.Errorf("%d bytes, want %d", n, want)
			}
			s.Stop()
			if rest, _ := io.ReadAll(lines); len(rest) > 0 {
				t.Errorf("unexpected output: %.200q", rest)
			}
		})
	}
}

// TestLongMessagesAreNotHeld checks the same for a request, whose id is at its end.
func TestLongMessagesAreNotHeld(t *testing.T) {
	const head, tail = `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"arguments":{"text":"`, `"}},"id":1}`
	for _, c := range []struct {
		name   string
		handle func(w http.ResponseWriter, r *http.Request)
		want   string
	}{
		{"accepted", func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", asJSON)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"bytes":%d,"headers":%q}}`, n, r.Header.Get("Mcp-Method")+" "+r.Header.Get("Mcp-Name")+" "+r.Header.Get("Mcp-Protocol-Version"))
		}, `{"jsonrpc":"2.0","id":1,"result":{"bytes":` + strconv.Itoa(len(head)+longFrame+len(tail)) + `,"headers":"tools/call echo 2026-07-28"}}`},
		{"refused", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			http.Error(w, "too long", http.StatusRequestEntityTooLarge)
		}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 413 Request Entity Too Large: too long"…`},
		{"refused unread", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "too long", http.StatusRequestEntityTooLarge)
		}, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the …`},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := connect(t, c.handle)
			grown := measureMemory()
			io.WriteString(cl.s.Stdin(), head)
			writeLetters(cl.s.Stdin(), longFrame)
			cl.send(tail)
			cl.expect(c.want)
			if most := grown(); most > maxMemory {
				t.Errorf("the memory grew by %d MiB", most>>20)
			}
			cl.close()
		})
	}
}

// A long message that cannot be sent is answered with an error.
func TestLongMessageNotSent(t *testing.T) {
	c := connect(t, nil, func(o *remote.Options) { o.Hold, o.Credentials = 4<<10, noToken{} })
	c.send(`{"jsonrpc":"2.0","method":"tools/call","params":{"x":"` + strings.Repeat("x", 1<<20) + `"},"id":1}`)
	c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"there is no token"…`)
	c.close()
}

// noToken is a credential that always fails.
type noToken struct{}

func (noToken) Set(context.Context, http.Header) error { return errors.New("there is no token") }

func (noToken) Refused(context.Context, remote.Refusal) (bool, error) { return false, nil }

// Large messages that the server does not read do not accumulate: they block the relay.
func TestUnreadMessagesAreBounded(t *testing.T) {
	const hold, n = 1 << 20, 20
	release := make(chan struct{})
	c := connect(t, func(w http.ResponseWriter, r *http.Request) {
		<-release
		io.Copy(io.Discard, r.Body)
		http.Error(w, "no", 500)
	}, func(o *remote.Options) { o.Hold = hold })
	large := strings.Repeat("x", hold*3/4)
	wrote := make(chan int, n)
	go func() {
		for i := range n {
			fmt.Fprintf(c.s.Stdin(), `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"x":"%s"}}`+"\n", i, large)
			wrote <- i
		}
	}()
	if <-wrote; len(wrote) > 3 {
		t.Errorf("%d messages were accepted", len(wrote))
	}
	close(release)
	for range n {
		c.receive()
	}
	c.close()
}

// A long answer that breaks while it is being written fails its own call and blocks no other.
func TestLongAnswerBreaks(t *testing.T) {
	for _, kind := range []string{asJSON, asEvents} {
		t.Run(kind, func(t *testing.T) {
			c := connect(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", kind)
				if body, _ := io.ReadAll(r.Body); string(body) != call {
					w.Header().Set("Content-Type", asJSON)
					io.WriteString(w, strings.Replace(result, `"id":1`, `"id":2`, 1))
					return
				}
				if kind == asEvents {
					io.WriteString(w, "data: ")
				}
				io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"x":"`)
				writeLetters(w, 1<<20)
				panic(http.ErrAbortHandler)
			}, func(o *remote.Options) { o.Hold = 64 << 10 })
			c.send(call)
			c.expect(`{"jsonrpc":"2.0","id":1,"result":{"x":"xxx…`)
			c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the …`)
			c.send(strings.Replace(call, `"id":1`, `"id":2`, 1))
			c.expect(strings.Replace(result, `"id":1`, `"id":2`, 1))
			c.close()
		})
	}
}
