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

// anyID finds an id.
var anyID = regexp.MustCompile(`"id":[^,]*,`)

// relayed begins a session behind a relay, which begins lost sessions again.
func (c *client) relayed(restart proxy.Restart) *client {
	in, out := mempipe.New(0), mempipe.New(0)
	over := make(chan struct{})
	var last *remote.Server
	go func() {
		defer close(over)
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
	c.in, c.stop = in, func() { in.CloseWrite(); <-over }
	go c.read(out)
	c.t.Cleanup(c.stop)
	return c
}

// textID finds ids that are texts: what is replayed has others than the client's.
var textID = regexp.MustCompile(`"id":"[^"]*",`)

// openRelayed is open behind a relay.
func (l *legacy) openRelayed(t *testing.T) *client {
	t.Helper()
	c := newClient(t, httptest.NewServer(l), remote.NewTransport(remote.TransportOptions{}))
	return c.relayed(proxy.Restart{}).begin()
}

// An away is a server that can be away: nobody listens at its address then.
type away struct {
	*memory
	away atomic.Bool
}

func (a *away) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if a.away.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	return a.memory.dial(ctx, network, address)
}

// openAway begins a session with a server in memory that can be away, behind a relay. It is
// called in a bubble.
func openAway(t *testing.T, handler http.Handler, wait time.Duration) (*client, *away) {
	t.Helper()
	a := &away{memory: newMemory()}
	transport := remote.NewTransport(remote.TransportOptions{})
	transport.DialContext = a.dial
	transport.DisableKeepAlives = true
	server := &httptest.Server{Listener: a, Config: &http.Server{Handler: handler}}
	server.Start()
	c := newClient(t, server, transport, func(o *remote.Options) { o.Wait = wait })
	return c.relayed(proxy.Restart{Hold: wait}), a
}

// A message that the server has not executed waits for it, for as long as it may, and
// everything else is answered at once.
func TestServerIsAway(t *testing.T) {
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
		name  string
		away  time.Duration // nobody listens for so long
		says  []refusal     // or the server says this first
		line  string
		want  string
		took  time.Duration // at most, and within a second
		calls int
	}{
		{"3 s", 3 * time.Second, nil, call, answer, 4 * time.Second, 1},
		{"too long", 20 * time.Second, nil, call, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server at 127.0.0.1:80 cannot be reached: …`, wait + time.Second, 0},
		{"503", 0, []refusal{{503, "", "", ""}}, call, refused, 0, 1},
		{"503 with Retry-After", 0, []refusal{{503, "1", "", ""}}, call, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 503 Service Unavailable; try again after 1"…`, 0, 1},
		{"503 with Retry-After to a list", 0, []refusal{{503, "2", "", ""}, {503, "1", "", "wait"}}, list, answer, 3 * time.Second, 3},
		{"503 with Retry-After and the reply", 0, []refusal{{503, "1", "", replied}}, call, replied, 0, 1},
		{"503 with Retry-After and the reply to a list", 0, []refusal{{503, "1", "", replied}}, list, replied, 0, 1},
		{"503 with Retry-After and a result", 0, []refusal{{503, "1", "", result}}, call, result, 0, 1},
		{"503 with Retry-After and an error of nobody", 0, []refusal{{503, "1", "", strings.Replace(replied, `"id":1`, `"id":null`, 1)}}, call, replied, 0, 1},
		{"503 of a front", 0, []refusal{{503, "2", "Attache-Executed: nothing", replied}, {503, "1", "Attache-Executed: nothing", ""}}, call, answer, 3 * time.Second, 3},
		{"503 of a front that names another one", 0, []refusal{{503, "1", "Attache-Front: 10.0.0.2:8333", replied}}, call, answer, time.Second, 2},
		{"503 of a front without Retry-After", 0, []refusal{{503, "", "Attache-Executed: nothing", ""}}, call, refused, 0, 1},
		{"503 with a long Retry-After", 0, []refusal{{503, "60", "Attache-Executed: nothing", ""}}, call, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 503 Service Unavailable; try again after 60…`, 0, 1},
		{"502", 0, []refusal{{502, "1", "", ""}}, list, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 502 Bad Gateway…`, 0, 1},
		{"504", 0, []refusal{{504, "", "", ""}}, list, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server answered HTTP 504 Gateway Timeout…`, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &legacy{}
				says := test.says
				l.answer = func(w http.ResponseWriter, r request) bool {
					if r.method != "tools/call" && r.method != "tools/list" || len(says) == 0 {
						return false
					}
					if says[0].after != "" {
						w.Header().Set("Retry-After", says[0].after)
					}
					if name, value, ok := strings.Cut(says[0].header, ": "); ok {
						w.Header().Set(name, value)
					}
					w.Header().Set("Content-Type", asJSON)
					w.WriteHeader(says[0].status)
					io.WriteString(w, says[0].body)
					says = says[1:]
					return true
				}
				c, a := openAway(t, l, wait)
				c.begin()
				synctest.Wait()
				began := time.Now()
				if a.away.Store(test.away > 0); test.away > 0 {
					time.AfterFunc(test.away, func() { a.away.Store(false) })
				}
				c.say(test.line)
				c.wants(test.want)
				if took := time.Since(began); took < test.took-time.Second || took > test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
				c.over()
				if n := len(l.seen("tools/call")) + len(l.seen("tools/list")); n != test.calls {
					t.Errorf("the server got the message %d times, want %d", n, test.calls)
				}
			})
		})
	}
}

// A notification may be executed twice: one that is refused for now is sent again.
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
		c, _ := openAway(t, l, 10*time.Second)
		c.begin()
		c.say(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		time.Sleep(2 * time.Second) // of the bubble
		if n := len(l.seen("notifications/roots/list_changed")); n != 2 {
			t.Errorf("it came %d times, want 2", n)
		}
		c.over()
	})
}

// A client that has not reached the server yet is told at once that nobody is there.
func TestServerIsAwayAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, a := openAway(t, &legacy{}, 10*time.Second)
		a.away.Store(true)
		began := time.Now()
		c.say(initialize)
		c.wants(`{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"the server at 127.0.0.1:80 cannot be reached: …`)
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %v", took)
		}
		c.over()
	})
}

// A restarting server is another one after each restart, and knows none of the sessions of
// the one before.
type restarting struct {
	mu  sync.Mutex
	now *legacy
	all []*legacy
}

func (r *restarting) next(answer func(http.ResponseWriter, request) bool) {
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
	r.now, r.all = l, append(r.all, l)
}

func (r *restarting) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	l := r.now
	r.mu.Unlock()
	l.ServeHTTP(w, req)
}

// A server that is killed and started again: the call that it was running has an error which
// says so, those that come while it is away are answered by the next one, the log level and
// the lists are those that the client knows, and the model is told once.
func TestServerIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const list = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`
		tools := func(name string) func(http.ResponseWriter, request) bool {
			return func(w http.ResponseWriter, r request) bool {
				if r.method != "tools/list" && r.method != "tools/call" {
					return false
				}
				var m wire.Message
				m.Reset(wire.Client, []byte(r.body))
				m.LookEnvelope()
				w.Header().Set("Content-Type", asJSON)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":%q}],"content":[]}}`, m.ID(), name)
				return true
			}
		}
		r := &restarting{}
		running := make(chan struct{})
		r.next(func(w http.ResponseWriter, got request) bool {
			if got.method == "tools/call" {
				close(running)
				panic(http.ErrAbortHandler) // killed
			}
			return tools("a")(w, got)
		})
		var changes []string
		a := &away{memory: newMemory()}
		transport := remote.NewTransport(remote.TransportOptions{})
		transport.DialContext = a.dial
		server := &httptest.Server{Listener: a, Config: &http.Server{Handler: r, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}}
		server.Start()
		c := newClient(t, server, transport, func(o *remote.Options) { o.Wait = 10 * time.Second })
		c.relayed(proxy.Restart{Name: "s", Notice: true, Changed: func(method, _, _ string) { changes = append(changes, method) }}).begin()
		c.say(list)
		c.wants(`{"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"a"}],"content":[]}}`)
		c.say(level)
		c.wants(`{"jsonrpc":"2.0","id":"l","result":{"session":"session-1"}}`)
		synctest.Wait()
		c.say(call)
		<-running
		a.away.Store(true)
		transport.CloseIdleConnections()
		c.wants(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server closed the connection before it answered; it may have executed the request…`)
		c.say(strings.Replace(call, `"id":1`, `"id":2`, 1))
		c.say(strings.Replace(call, `"id":1`, `"id":3`, 1))
		time.Sleep(3 * time.Second)
		r.next(tools("b"))
		a.away.Store(false)
		notices := 0
		for range 2 {
			line := c.hear()
			if !strings.Contains(line, `"result"`) {
				t.Errorf("got %s", line)
			}
			notices += strings.Count(line, "the server s has lost the session")
		}
		synctest.Wait()
		c.over()
		if c.failed != nil {
			t.Errorf("the last session ended with %v", c.failed)
		}
		if notices != 1 {
			t.Errorf("the model was told %d times", notices)
		}
		if fmt.Sprint(changes) != "[tools/list]" {
			t.Errorf("changed: %v", changes)
		}
		first, second := r.all[0], r.all[1]
		// The second waits with the first, or is sent with it and refused, too.
		if n, m := len(first.seen("tools/call")), len(second.seen("tools/call")); n != 1 || m != 1+2 && m != 2+2 {
			t.Errorf("%d calls, then %d: want 1, then 1 or 2 that are refused and 2", n, m)
		}
		if n := len(second.seen("logging/setLevel")); n != 1 {
			t.Errorf("the level was set %d times", n)
		}
	})
}

// A slowToken is a credential that is not there for the first call before the session ends.
type slowToken struct {
	asked   atomic.Int32
	waiting chan struct{}
}

func (c *slowToken) Set(ctx context.Context, h http.Header) error {
	if h.Get("Mcp-Session-Id") == "session-1" && c.asked.Add(1) == 3 { // behind initialized and the GET
		close(c.waiting)
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (c *slowToken) Refused(context.Context, remote.Refusal) (bool, error) { return false, nil }

// A request that had not been sent when the session was lost is sent in the next session, also
// if it was not ready to be sent before the old one had ended.
func TestLostBeforeItWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &legacy{}
		l.loses(goneAs["404"])
		network := newMemory()
		transport := remote.NewTransport(remote.TransportOptions{})
		transport.DialContext = network.dial
		server := &httptest.Server{Listener: network, Config: &http.Server{Handler: l}}
		server.Start()
		token := &slowToken{waiting: make(chan struct{})}
		c := newClient(t, server, transport, func(o *remote.Options) { o.Credentials = token })
		c.relayed(proxy.Restart{}).begin()
		synctest.Wait()
		c.say(strings.Replace(call, `"id":1`, `"id":2`, 1))
		<-token.waiting
		c.say(call)
		got := []string{c.hear(), c.hear()}
		slices.Sort(got)
		if want := []string{`{"jsonrpc":"2.0","id":1,"result":{"session":"session-2"}}`, `{"jsonrpc":"2.0","id":2,"result":{"session":"session-2"}}`}; !slices.Equal(got, want) {
			t.Errorf("got %q", got)
		}
		c.over()
	})
}
