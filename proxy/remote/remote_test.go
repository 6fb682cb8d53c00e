package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/proxy/wire"
)

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// A client is the relay's end of a session with a server that a test scripts.
type client struct {
	t     *testing.T
	o     remote.Options
	s     *remote.Server // nil behind a relay
	in    io.Writer
	stop  func()
	lines chan string
	log   *logged

	failed error // behind a relay, how the last session ended
}

// logged is what a session has logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// connect begins a session with a server that answers as the handler says.
func connect(t *testing.T, handler http.HandlerFunc, change ...func(*remote.Options)) *client {
	t.Helper()
	return connectTo(t, httptest.NewServer(handler), remote.NewTransport(remote.TransportOptions{}), change...)
}

// A memory is a network in memory. In a bubble of testing/synctest, with the clock of the
// bubble, nothing depends on how fast the machine is.
type memory struct {
	dialled chan net.Conn
	closed  chan struct{}
	close   func()
}

func newMemory() *memory {
	m := &memory{dialled: make(chan net.Conn), closed: make(chan struct{})}
	m.close = sync.OnceFunc(func() { close(m.closed) })
	return m
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case conn := <-m.dialled:
		return conn, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error   { m.close(); return nil }
func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (m *memory) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case m.dialled <- theirs:
		return ours, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// connectInMemory is connect in a bubble.
func connectInMemory(t *testing.T, handler http.HandlerFunc, change ...func(*remote.Options)) *client {
	t.Helper()
	network := newMemory()
	transport := remote.NewTransport(remote.TransportOptions{})
	transport.DialContext = network.dial
	server := &httptest.Server{Listener: network, Config: &http.Server{Handler: handler}}
	server.Start()
	return connectTo(t, server, transport, change...)
}

// connectTo begins a session with a server that runs.
func connectTo(t *testing.T, server *httptest.Server, transport *remote.Transport, change ...func(*remote.Options)) *client {
	t.Helper()
	c := newClient(t, server, transport, change...)
	s, err := remote.Start(c.o)
	if err != nil {
		t.Fatal(err)
	}
	c.s, c.in, c.stop = s, s.Stdin(), s.Stop
	go c.read(s.Stdout())
	t.Cleanup(s.Stop)
	return c
}

// newClient prepares a session with a server that runs.
func newClient(t *testing.T, server *httptest.Server, transport *remote.Transport, change ...func(*remote.Options)) *client {
	t.Helper()
	t.Cleanup(server.Close)
	c := &client{t: t, lines: make(chan string, 1000), log: &logged{}}
	t.Cleanup(transport.CloseIdleConnections)
	o := remote.Options{URL: server.URL + "/mcp", Transport: transport, Log: slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&o)
	}
	c.o = o
	return c
}

// read takes the lines of the session until it is over.
func (c *client) read(from io.Reader) {
	defer close(c.lines)
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			c.lines <- line
		}
		if err != nil {
			return
		}
	}
}

// say sends a line.
func (c *client) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// hear returns the next line, without its end.
func (c *client) hear() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("the session is over\n%s", c.log)
		}
		text, whole := strings.CutSuffix(line, "\n")
		if !whole {
			c.t.Fatalf("the line %q has no end", line)
		}
		return text
	case <-time.After(patience):
		c.t.Fatalf("nothing came\n%s", c.log)
	}
	return ""
}

// wants checks the next line. A text that ends in … is a beginning.
func (c *client) wants(want string) {
	c.t.Helper()
	got := c.hear()
	if beginning, ok := strings.CutSuffix(want, "…"); ok && strings.HasPrefix(got, beginning) || got == want {
		return
	}
	c.t.Errorf("got  %s\nwant %s", got, want)
}

// over checks that the session ends and that nothing more comes.
func (c *client) over() {
	c.t.Helper()
	c.stop()
	for line := range c.lines {
		c.t.Errorf("more came: %s", line)
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	agreed      = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}`
	call        = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}`
	result      = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}`
)

// A request is what a server was sent.
type request struct {
	http.Header
	verb, method string // of HTTP, of the message
	body         string
}

func (r *request) session() string { return r.Get("Mcp-Session-Id") }

// A legacy server keeps sessions: it opens one for each initialize, and hands all else to
// its handler.
type legacy struct {
	mu       sync.Mutex
	opened   int
	requests []request
	// answer answers what belongs to a session. It reports false to leave that to the
	// server, which knows no other methods.
	answer func(w http.ResponseWriter, r request) bool
}

func (l *legacy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m wire.Message
	m.Reset(wire.Client, body)
	m.LookEnvelope()
	got := request{r.Header, r.Method, m.Method(), string(body)}
	l.mu.Lock()
	l.requests = append(l.requests, got)
	l.mu.Unlock()
	if l.answer != nil && l.answer(w, got) {
		return
	}
	switch {
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method == http.MethodDelete:
	case got.method == "initialize":
		l.mu.Lock()
		l.opened++
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("session-%d", l.opened))
		l.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, strings.Replace(agreed, `"id":0`, `"id":`+string(m.ID()), 1))
	case m.Kind() == wire.Request:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"session":%q}}`, m.ID(), got.session())
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// seen returns the requests with the method, of HTTP or of the message.
func (l *legacy) seen(method string) (found []request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.requests {
		if r.method == method || r.verb == method {
			found = append(found, r)
		}
	}
	return found
}

// open begins a session with the server.
func (l *legacy) open(t *testing.T, change ...func(*remote.Options)) *client {
	t.Helper()
	return connect(t, l.ServeHTTP, change...).begin()
}

// openInMemory is open in a bubble.
func (l *legacy) openInMemory(t *testing.T) *client {
	t.Helper()
	return connectInMemory(t, l.ServeHTTP).begin()
}

// begin initialises a session.
func (c *client) begin() *client {
	c.t.Helper()
	c.say(initialize)
	c.wants(agreed)
	c.say(initialized)
	return c
}
