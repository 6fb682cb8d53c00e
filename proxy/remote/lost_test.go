package remote_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/proxy/wire"
)

// anyID matches an id.
var anyID = regexp.MustCompile(`"id":[^,]*,`)

// startRelay starts a session behind a relay, which restores lost sessions.
func (c *client) startRelay(restart proxy.Restart) *client {
	in, out := mempipe.New(0), mempipe.New(0)
	done := make(chan struct{})
	var last *remote.Server
	go func() {
		defer close(done)
		defer func() { c.failed = last.Wait() }()
		defer out.CloseWrite()
		err := proxy.Run(context.Background(), proxy.Options{
			ClientIn: in, ClientOut: out, Restart: &restart, Log: c.o.Log, IDPrefix: "attache-",
			Start: func(context.Context) (proxy.Upstream, error) {
				s, err := remote.Start(c.o)
				last = s
				return s, err
			},
		})
		if err != nil {
			c.t.Error(err)
		}
	}()
	c.in, c.stop = in, func() { in.CloseWrite(); <-done }
	go c.read(out)
	c.t.Cleanup(c.stop)
	return c
}

// textID matches string ids: replayed requests have other ids than the client's.
var textID = regexp.MustCompile(`"id":"[^"]*",`)

// openRelayed is open behind a relay.
func (l *legacy) openRelayed(t *testing.T) *client {
	t.Helper()
	c := newClient(t, httptest.NewServer(l), remote.NewTransport(remote.TransportOptions{}))
	return c.startRelay(proxy.Restart{}).initialize()
}

// A flakyNetwork refuses connections while down is set.
type flakyNetwork struct {
	*memoryNetwork
	down atomic.Bool
}

func (a *flakyNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if a.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return a.memoryNetwork.dial(ctx, network, address)
}

// openFlaky starts a session behind a relay, with a server on a flakyNetwork. It must be
// called in a synctest bubble.
func openFlaky(t *testing.T, handler http.Handler, wait time.Duration) (*client, *flakyNetwork) {
	t.Helper()
	a := &flakyNetwork{memoryNetwork: newMemoryNetwork()}
	transport := remote.NewTransport(remote.TransportOptions{})
	transport.DialContext = a.dial
	transport.DisableKeepAlives = true
	server := &httptest.Server{Listener: a, Config: &http.Server{Handler: handler}}
	server.Start()
	c := newClient(t, server, transport, func(o *remote.Options) { o.Wait = wait })
	return c.startRelay(proxy.Restart{Hold: wait}), a
}

// A message that the server has not executed waits until the server is back or the wait is over.
// All other messages are answered immediately.
func TestServerIsDown(t *testing.T) {
	const wait = 10 * time.Second
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"session":"session-1"}}`
	list := strings.Replace(call, "tools/call", "tools/list", 1)
	type refusal struct {
		status int
		after  string
		header string // "Attache-…: value"
		body   string
	}
	const replied = `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"not now"}}`
	const refused = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 503 Service Unavailable…`
	for _, test := range []struct {
		name     string
		down     time.Duration // how long connections are refused
		refusals []refusal     // the first answers of the server
		line     string
		want     string
		took     time.Duration // at most, and at least a second less
		calls    int
	}{
		{"down for 3 s", 3 * time.Second, nil, call, answer, 4 * time.Second, 1},
		{"down for too long", 20 * time.Second, nil, call, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server at 127.0.0.1:80 cannot be reached: …`, wait + time.Second, 0},
		{"503", 0, []refusal{{503, "", "", ""}}, call, refused, 0, 1},
		{"503 with Retry-After", 0, []refusal{{503, "1", "", ""}}, call, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 503 Service Unavailable; try again after 1 s"…`, 0, 1},
		{"503 with Retry-After for a list", 0, []refusal{{503, "2", "", ""}, {503, "1", "", "wait"}}, list, answer, 3 * time.Second, 3},
		{"503 with a date in Retry-After", 0, []refusal{{503, "Sat, 01 Jan 2000 00:00:02 GMT", "", ""}}, list, answer, 2 * time.Second, 2},
		{"503 with a late date in Retry-After", 0, []refusal{{503, "Sat, 01 Jan 2000 00:01:00 GMT", "", ""}}, list, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 503 Service Unavailable; try again after Sat…`, 0, 1},
		{"503 with Retry-After and an error", 0, []refusal{{503, "1", "", replied}}, call, replied, 0, 1},
		{"503 with Retry-After and an error for a list", 0, []refusal{{503, "1", "", replied}}, list, replied, 0, 1},
		{"503 with Retry-After and a result", 0, []refusal{{503, "1", "", result}}, call, result, 0, 1},
		{"503 with Retry-After and an error without id", 0, []refusal{{503, "1", "", strings.Replace(replied, `"id":1`, `"id":null`, 1)}}, call, replied, 0, 1},
		{"503 from a front", 0, []refusal{{503, "2", "Attache-Executed: nothing", replied}, {503, "1", "Attache-Executed: nothing", ""}}, call, answer, 3 * time.Second, 3},
		{"503 from a front that names another one", 0, []refusal{{503, "1", "Attache-Front: 10.0.0.2:8333", replied}}, call, answer, time.Second, 2},
		{"503 from a front without Retry-After", 0, []refusal{{503, "", "Attache-Executed: nothing", ""}}, call, refused, 0, 1},
		{"503 with a long Retry-After", 0, []refusal{{503, "60", "Attache-Executed: nothing", ""}}, call, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 503 Service Unavailable; try again after 60 s…`, 0, 1},
		{"502", 0, []refusal{{502, "1", "", ""}}, list, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 502 Bad Gateway…`, 0, 1},
		{"504", 0, []refusal{{504, "", "", ""}}, list, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 504 Gateway Timeout…`, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &legacy{}
				refusals := test.refusals
				l.answer = func(w http.ResponseWriter, r request) bool {
					if r.method != "tools/call" && r.method != "tools/list" || len(refusals) == 0 {
						return false
					}
					if refusals[0].after != "" {
						w.Header().Set("Retry-After", refusals[0].after)
					}
					if name, value, ok := strings.Cut(refusals[0].header, ": "); ok {
						w.Header().Set(name, value)
					}
					w.Header().Set("Content-Type", asJSON)
					w.WriteHeader(refusals[0].status)
					io.WriteString(w, refusals[0].body)
					refusals = refusals[1:]
					return true
				}
				c, network := openFlaky(t, l, wait)
				c.initialize()
				synctest.Wait()
				began := time.Now() // a bubble begins at midnight of 2000-01-01
				if network.down.Store(test.down > 0); test.down > 0 {
					time.AfterFunc(test.down, func() { network.down.Store(false) })
				}
				c.send(test.line)
				c.expect(test.want)
				if took := time.Since(began); took < test.took-time.Second || took > test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
				c.close()
				if n := len(l.seen("tools/call")) + len(l.seen("tools/list")); n != test.calls {
					t.Errorf("the server got the message %d times, want %d", n, test.calls)
				}
			})
		})
	}
}

// A notification that is refused temporarily is sent again: it may be executed twice.
func TestNotificationsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, refused := &legacy{}, false
		l.answer = func(w http.ResponseWriter, r request) bool {
			if r.method != "notifications/roots/list_changed" || refused {
				return false
			}
			refused = true
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		c, _ := openFlaky(t, l, 10*time.Second)
		c.initialize()
		c.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		time.Sleep(2 * time.Second) // on the bubble's clock
		if n := len(l.seen("notifications/roots/list_changed")); n != 2 {
			t.Errorf("the notification was sent %d times, want 2", n)
		}
		c.close()
	})
}

// The first message of a client is answered immediately if the server cannot be reached.
func TestServerIsDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, network := openFlaky(t, &legacy{}, 10*time.Second)
		network.down.Store(true)
		began := time.Now()
		c.send(initialize)
		c.expect(`{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"the server at 127.0.0.1:80 cannot be reached: …`)
		if took := time.Since(began); took > 0 {
			t.Errorf("the answer took %v", took)
		}
		c.close()
	})
}

// A restartingServer replaces its legacy server at each restart. The new one knows no earlier
// sessions.
type restartingServer struct {
	mu      sync.Mutex
	current *legacy
	all     []*legacy
}

func (r *restartingServer) restart(answer func(http.ResponseWriter, request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &legacy{answer: answer, opened: 10 * len(r.all)}
	own := fmt.Sprintf("session-%d", l.opened+1)
	l.answer = func(w http.ResponseWriter, got request) bool {
		if got.session() != "" && got.session() != own {
			http.Error(w, "session not found", http.StatusNotFound)
			return true
		}
		return answer != nil && answer(w, got)
	}
	r.current, r.all = l, append(r.all, l)
}

func (r *restartingServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	l := r.current
	r.mu.Unlock()
	l.ServeHTTP(w, req)
}

// The server is killed and restarted. The running call fails, calls sent while the server is down
// are answered after the restart, the log level is restored, changed lists are reported, and the
// model gets one notice.
func TestServerIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const list = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`
		tools := func(name string) func(http.ResponseWriter, request) bool {
			return func(w http.ResponseWriter, r request) bool {
				if r.method != "tools/list" && r.method != "tools/call" {
					return false
				}
				m := wire.Parse(wire.Client, []byte(r.body))
				w.Header().Set("Content-Type", asJSON)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":%q}],"content":[]}}`, m.ID(), name)
				return true
			}
		}
		r := &restartingServer{}
		running := make(chan struct{})
		r.restart(func(w http.ResponseWriter, got request) bool {
			if got.method == "tools/call" {
				close(running)
				panic(http.ErrAbortHandler) // killed
			}
			return tools("a")(w, got)
		})
		var changes []string
		network := &flakyNetwork{memoryNetwork: newMemoryNetwork()}
		transport := remote.NewTransport(remote.TransportOptions{})
		transport.DialContext = network.dial
		server := &httptest.Server{Listener: network, Config: &http.Server{Handler: r, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}}
		server.Start()
		c := newClient(t, server, transport, func(o *remote.Options) { o.Wait = 10 * time.Second })
		c.startRelay(proxy.Restart{Name: "s", Notice: true, Changed: func(method, _, _ string) { changes = append(changes, method) }}).initialize()
		c.send(list)
		c.expect(`{"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"a"}],"content":[]}}`)
		c.send(level)
		c.expect(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
		synctest.Wait()
		c.send(call)
		<-running
		network.down.Store(true)
		transport.CloseIdleConnections()
		c.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server closed the connection before it answered; it may have executed the request…`)
		c.send(strings.Replace(call, `"id":1`, `"id":2`, 1))
		c.send(strings.Replace(call, `"id":1`, `"id":3`, 1))
		time.Sleep(3 * time.Second)
		r.restart(tools("b"))
		network.down.Store(false)
		notices := 0
		for range 2 {
			line := c.receive()
			if !strings.Contains(line, `"result"`) {
				t.Errorf("got %s", line)
			}
			notices += strings.Count(line, "the server s has lost the session")
		}
		synctest.Wait()
		c.close()
		if c.failed != nil {
			t.Errorf("the last session ended with %v", c.failed)
		}
		if notices != 1 {
			t.Errorf("the model got %d notices", notices)
		}
		if fmt.Sprint(changes) != "[tools/list]" {
			t.Errorf("changed lists: %v", changes)
		}
		first, second := r.all[0], r.all[1]
		// The second call waits with the first, or is sent with it and also refused.
		if n, m := len(first.seen("tools/call")), len(second.seen("tools/call")); n != 1 || m != 1+2 && m != 2+2 {
			t.Errorf("%d calls, then %d: want 1, then 1 or 2 that are refused and 2", n, m)
		}
		if n := len(second.seen("logging/setLevel")); n != 1 {
			t.Errorf("the level was set %d times", n)
		}
	})
}

// A slowToken is a credential that blocks the first call of session-1 until the session ends.
type slowToken struct {
	asked   atomic.Int32
	waiting chan struct{}
}

func (c *slowToken) Set(ctx context.Context, h http.Header) error {
	if h.Get("Mcp-Session-Id") == "session-1" && c.asked.Add(1) == 3 { // after initialized and the GET
		close(c.waiting)
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (c *slowToken) Refused(context.Context, remote.Refusal) (bool, error) { return false, nil }

// A request that was not sent before the session was lost is sent in the next session, even if
// its credential was still missing when the old session ended.
func TestUnsentRequestOfLostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		l.loseFirstSession(sessionNotFound["404"])
		network := newMemoryNetwork()
		transport := remote.NewTransport(remote.TransportOptions{})
		transport.DialContext = network.dial
		server := &httptest.Server{Listener: network, Config: &http.Server{Handler: l}}
		server.Start()
		token := &slowToken{waiting: make(chan struct{})}
		c := newClient(t, server, transport, func(o *remote.Options) { o.Credentials = token })
		c.startRelay(proxy.Restart{}).initialize()
		synctest.Wait()
		c.send(strings.Replace(call, `"id":1`, `"id":2`, 1))
		<-token.waiting
		c.send(call)
		got := []string{c.receive(), c.receive()}
		slices.Sort(got)
		if want := []string{`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`, `{"jsonrpc":"2.0","id":2,"result":{"session":"session-2"}}`}; !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		c.close()
	})
}
