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

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/proxy/wire"
)

// patience is how long a test waits for an expected message.
const patience = 2 * time.Minute

// A client is the relay's end of a session with a scripted server.
type client struct {
	t     *testing.T
	o     remote.Options
	s     *remote.Server // nil behind a relay
	in    io.Writer
	stop  func()
	lines chan string
	log   *logBuffer

	failed error // behind a relay, the error of the last session
}

// A logBuffer holds the log of a session.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// connect starts a session with a server that has the given handler.
func connect(t *testing.T, handler http.HandlerFunc, change ...func(*remote.Options)) *client {
	t.Helper()
	return connectTo(t, httptest.NewServer(handler), remote.NewTransport(remote.TransportOptions{}), change...)
}

// A memoryNetwork is an in-memory network and its only listener. In a synctest bubble, tests that
// use it do not depend on the speed of the machine.
type memoryNetwork struct {
	dialled chan net.Conn
	closed  chan struct{}
	close   func()
}

func newMemoryNetwork() *memoryNetwork {
	m := &memoryNetwork{dialled: make(chan net.Conn), closed: make(chan struct{})}
	m.close = sync.OnceFunc(func() { close(m.closed) })
	return m
}

func (m *memoryNetwork) Accept() (net.Conn, error) {
	select {
	case conn := <-m.dialled:
		return conn, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memoryNetwork) Close() error   { m.close(); return nil }
func (m *memoryNetwork) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (m *memoryNetwork) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case m.dialled <- theirs:
		return ours, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// connectInMemory is connect for a synctest bubble.
func connectInMemory(t *testing.T, handler http.HandlerFunc, change ...func(*remote.Options)) *client {
	t.Helper()
	network := newMemoryNetwork()
	transport := remote.NewTransport(remote.TransportOptions{})
	transport.DialContext = network.dial
	server := &httptest.Server{Listener: network, Config: &http.Server{Handler: handler}}
	server.Start()
	return connectTo(t, server, transport, change...)
}

// connectTo starts a session with a running server.
func connectTo(t *testing.T, server *httptest.Server, transport *remote.Transport, change ...func(*remote.Options)) *client {
	t.Helper()
	c := newClient(t, server, transport, change...)
	s, err := remote.Start(c.o)
	testkit.Check(t, err)
	c.s, c.in, c.stop = s, s.Stdin(), s.Stop
	go c.read(s.Stdout())
	t.Cleanup(s.Stop)
	return c
}

// newClient prepares a session with a running server.
func newClient(t *testing.T, server *httptest.Server, transport *remote.Transport, change ...func(*remote.Options)) *client {
	t.Helper()
	t.Cleanup(server.Close)
	c := &client{t: t, lines: make(chan string, 1000), log: &logBuffer{}}
	t.Cleanup(transport.CloseIdleConnections)
	o := remote.Options{URL: server.URL + "/mcp", Transport: transport, Log: slog.New(slog.NewTextHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for _, f := range change {
		f(&o)
	}
	c.o = o
	return c
}

// read reads the lines of the session until it ends.
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

// send sends a line.
func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// receive returns the next line, without its newline.
func (c *client) receive() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatalf("the session has ended\n%s", c.log)
		}
		text, whole := strings.CutSuffix(line, "\n")
		if !whole {
			c.t.Fatalf("the line %q has no newline", line)
		}
		return text
	case <-time.After(patience):
		c.t.Fatalf("received nothing\n%s", c.log)
	}
	return ""
}

// expect checks the next line. A want that ends in … is a prefix.
func (c *client) expect(want string) {
	c.t.Helper()
	got := c.receive()
	if beginning, ok := strings.CutSuffix(want, "…"); ok && strings.HasPrefix(got, beginning) || got == want {
		return
	}
	c.t.Errorf("got  %s\nwant %s", got, want)
}

// close ends the session and checks that no more lines arrive.
func (c *client) close() {
	c.t.Helper()
	c.stop()
	for line := range c.lines {
		c.t.Errorf("unexpected line: %s", line)
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	agreed      = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}}`
	call        = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}`
	result      = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}]}}`
)

// A request is an HTTP request that a server received.
type request struct {
	http.Header
	verb, method string // the methods of HTTP and of the message
	body         string
}

func (r *request) session() string { return r.Get("Mcp-Session-Id") }

// A legacy server has sessions: it opens one for each initialize, and passes all other requests
// to its answer function.
type legacy struct {
	mu       sync.Mutex
	opened   int
	requests []request
	// answer answers a request. If it returns false or is nil, the server answers with a default.
	answer func(w http.ResponseWriter, r request) bool
}

func (l *legacy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m := wire.Parse(wire.Client, body)
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

// seen returns the requests with the given HTTP or message method.
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

// open starts and initializes a session with the server.
func (l *legacy) open(t *testing.T, change ...func(*remote.Options)) *client {
	t.Helper()
	return connect(t, l.ServeHTTP, change...).initialize()
}

// openInMemory is open for a synctest bubble.
func (l *legacy) openInMemory(t *testing.T) *client {
	t.Helper()
	return connectInMemory(t, l.ServeHTTP).initialize()
}

// initialize initializes the session.
func (c *client) initialize() *client {
	c.t.Helper()
	c.send(initialize)
	c.expect(agreed)
	c.send(initialized)
	return c
}

// A refused address says why, and its text has no credential of the address.
func TestCheckURL(t *testing.T) {
	for address, want := range map[string]string{
		"http://localhost/mcp":           "",
		"https://example.com:65535/mcp":  "",
		"https://example.com:0/mcp":      "has the port 0",
		"https://example.com:65536/mcp":  "has the port 65536",
		"https:///mcp":                   "has no host",
		"https://example.com/mcp#x":      "has a fragment",
		"ftp://example.com/mcp":          "does not begin with https:// or http://",
		"https://u:secret@example.com/":  "has a user or a password",
		"https://u:secret@example.com:x": "is not an address",
	} {
		err := remote.CheckURL(address)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v, want %s", address, err, want)
		}
		if _, started := remote.Start(remote.Options{URL: address}); (started == nil) != (err == nil) {
			t.Errorf("Start(%s): %v", address, started)
		}
	}
}
