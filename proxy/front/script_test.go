package front

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// TestScripts plays the files of testdata. Each section is a case in a world of its own,
// whose clock stands still while anything moves. The comment of a file says which
// commands there are.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range txtar.Parse(data).Files {
			t.Run(section.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newWorld(t).play(string(section.Data)) })
			})
		}
	}
}

// A world is a front, its servers and its clients.
type world struct {
	*testing.T
	o         Options
	front     *Front
	listener  *pipeListener
	server    *http.Server
	client    *http.Client
	log       strings.Builder
	store     *memoryStore // of w.o, nil for none
	ids       idNames
	http2     bool
	deaf      int // how many bytes a server takes that it does not read; 0 for any number
	children  int // how many servers may run; 0 for any number
	layers    []middleware.Layer
	judged    []string // methods of the messages that came to a layer, each with its sender
	sessions  map[string]string
	exchanges map[string]*clientExchange
	raw       map[string]net.Conn

	mu      sync.Mutex
	servers []*mempipe.Server
	running int // sessions that have not been closed
}

// A clientExchange is a request as its client sees it.
type clientExchange struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the headers are there, or the error
	resp   *http.Response
	err    error
	body   *bufio.Reader
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, sessions: map[string]string{}, exchanges: map[string]*clientExchange{}, raw: map[string]net.Conn{}, listener: newPipeListener()}
	w.o = Options{Limits: DefaultLimits(), Open: w.open}
	return w
}

func (w *world) open(Opening) (Relay, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running++; w.children > 0 && w.running > w.children {
		w.running--
		return Relay{}, ErrBusy
	}
	return Relay{Closed: w.closed, Options: proxy.Options{Hold: w.o.Hold, Layers: w.layers, Log: w.o.Log.With("client", "its"), Start: func(context.Context) (proxy.Upstream, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		s := mempipe.NewServer(w.deaf)
		go func() { <-s.Stopping(); s.Exit(nil) }()
		w.servers = append(w.servers, s)
		return s, nil
	}}}, nil
}

// judge is a layer that notes who sends the messages of the client, and holds back those of the
// method held for a second.
func (w *world) judge(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From == wire.Client {
			w.mu.Lock()
			w.judged = append(w.judged, fmt.Sprint(m.Get("method").Text(), "=", m.Beside))
			held := strings.HasPrefix(w.judged[len(w.judged)-1], "held=")
			w.mu.Unlock()
			if held {
				middleware.CallFrom(ctx).Suspend(m, nil, time.Second, next)
				return nil
			}
		}
		return next(ctx, m)
	}
}

func (w *world) closed() {
	if w.children > 0 {
		time.Sleep(time.Millisecond) // a process takes a moment to end
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
}

// start begins to serve, with the options that the script has set by then.
func (w *world) start() {
	if w.front != nil {
		return
	}
	w.o.Log = slog.New(slog.NewTextHandler(&w.log, nil))
	w.front = New(w.o)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!w.http2)
	protocols.SetUnencryptedHTTP2(w.http2)
	w.server = &http.Server{Handler: w.front, Protocols: protocols}
	go w.server.Serve(w.listener)
	transport := &http.Transport{DialContext: w.listener.dial, DisableCompression: true, Protocols: protocols}
	w.client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (w *world) play(script string) {
	defer w.end()
	for n, line := range strings.Split(script, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := w.step(line); err != nil {
			w.Fatalf("line %d: %s: %v\n%s", n+1, line, err, w.log.String())
		}
	}
}

func (w *world) end() {
	for _, c := range w.raw {
		c.Close()
	}
	for _, x := range w.exchanges {
		x.cancel()
	}
	if w.front != nil {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.front.Drain(ctx)
		w.server.Close()
		w.client.CloseIdleConnections()
	}
	w.listener.Close()
}

// step does what a line says.
func (w *world) step(line string) error {
	command, rest, _ := strings.Cut(line, " ")
	switch command {
	case "set":
		return w.set(rest)
	case "open":
		return w.openSession(rest)
	case "send":
		return w.send(rest)
	case "many":
		number, session, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(number)
		for i := range n {
			if err := w.send(fmt.Sprintf(`many-%d POST %s | {"jsonrpc":"2.0","id":"many-%d","method":"ping"}`, i, session, i)); err != nil {
				return err
			}
		}
		return nil
	case "resp":
		return w.expectResponse(strings.Fields(rest))
	case "body", "event", "comment", "end", "cut":
		name, want, _ := strings.Cut(rest, " ")
		return w.expectBody(command, name, want)
	case "raw": // NAME BYTES, on a connection of its own
		name, text, _ := strings.Cut(rest, " ")
		w.start()
		c, err := w.listener.dial(context.Background(), "", "")
		if err != nil {
			return err
		}
		w.raw[name] = c
		go func() { _, _ = io.WriteString(c, unescape(text)) }()
		synctest.Wait()
		return nil
	case "answered": // NAME STATUS, and the connection is closed
		name, status, _ := strings.Cut(rest, " ")
		b, _ := io.ReadAll(w.raw[name])
		if !strings.HasPrefix(string(b), "HTTP/1.1 "+status) {
			return fmt.Errorf("got %q", b)
		}
		return nil
	case "leave":
		w.exchanges[rest].cancel()
		synctest.Wait()
		return nil
	case "wait":
		d, err := time.ParseDuration(rest)
		time.Sleep(d)
		synctest.Wait()
		return err
	case "passed": // TIME at most, since the beginning; the clock of a bubble begins at midnight
		d, err := time.ParseDuration(rest)
		if passed := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil && passed > d {
			err = fmt.Errorf("%v have passed", passed)
		}
		return err
	case "alive": // NAME TIME, with a comment every aliveTime
		name, text, _ := strings.Cut(rest, " ")
		d, err := time.ParseDuration(text)
		for range d / aliveTime {
			if err == nil {
				time.Sleep(aliveTime)
				err = w.expectBody("comment", name, "")
			}
		}
		return err
	case "drain":
		go w.front.Drain(context.Background())
		synctest.Wait()
		return nil
	case "restart": // the process ends, and another one takes its place
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.front.Drain(ctx)
		w.server.Close()
		w.client.CloseIdleConnections()
		w.listener.Close()
		w.front, w.listener = nil, newPipeListener()
		return nil
	case "id": // NAME ROUTE
		name, route, _ := strings.Cut(rest, " ")
		if err := w.expectResponse([]string{name, "200"}); err != nil {
			return err
		}
		if id := w.exchanges[name].resp.Header.Get(sessionHeader); !regexp.MustCompile("^" + regexp.QuoteMeta(route) + "[0-9a-f]{32}$").MatchString(id) {
			return fmt.Errorf("it is %s", id)
		}
		return nil
	case "session": // NAME REQUEST
		name, request, _ := strings.Cut(rest, " ")
		w.sessions[name] = w.exchanges[request].resp.Header.Get(sessionHeader)
		return nil
	case "unowned": // NAME
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		key := sessions.NewKey(w.sessions[rest], "")
		if _, saved := w.store.saved[key]; !saved || w.store.own[key] {
			return errors.New("this front has it, or nobody keeps it")
		}
		return nil
	case "other": // ADDRESS: another front has what this one has left; - for none
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.other = strings.TrimPrefix(rest, "-")
		return nil
	case "another": // ADDRESS: another front is alive, and has no session
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.alive = rest
		return nil
	case "taken": // another front has taken all sessions, and this one finds out
		w.store.mu.Lock()
		clear(w.store.own)
		w.store.other = rest
		w.store.mu.Unlock()
		err := w.front.Recheck(context.Background())
		synctest.Wait()
		return err
	case "forgotten": // the store comes back without what it had
		w.store.mu.Lock()
		clear(w.store.own)
		w.store.mu.Unlock()
		if err := w.front.Recheck(context.Background()); err != nil {
			return err
		}
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		if len(w.store.own) == 0 {
			return errors.New("the session is not kept again")
		}
		return nil
	case "down": // yes or no: the store does not answer
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.down = rest == "yes"
		return nil
	case "judged": // METHOD=CREDENTIAL..., all since the beginning
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := strings.Join(w.judged, " "); got != rest {
			return fmt.Errorf("got %s", got)
		}
		return nil
	case "log":
		if !strings.Contains(w.log.String(), rest) {
			return errors.New("the log has other lines")
		}
		return nil
	}
	var i int
	if _, err := fmt.Sscanf(command, "s%d", &i); err != nil {
		return errors.New("unknown command")
	}
	return w.serverStep(i, rest)
}

// set changes an option before the first request.
func (w *world) set(rest string) error {
	name, value, _ := strings.Cut(rest, " ")
	var n int
	_, _ = fmt.Sscan(value, &n)
	l := w.o.Limits
	switch name {
	case "sessions":
		l.Sessions = n
	case "per_principal":
		l.PerPrincipal = n
	case "in_flight":
		l.InFlight = n
	case "body":
		l.Body = int64(n)
	case "hold":
		w.o.Hold = n
	case "store":
		w.store = &memoryStore{saved: map[sessions.Key]sessions.Session{}, own: map[sessions.Key]bool{}}
		w.o.Store = w.store
	case "http2":
		w.http2 = true
	case "deaf":
		w.deaf = n
	case "children":
		w.children = n
	case "enforce":
		w.layers = []middleware.Layer{{Name: "test", Enforces: true}}
	case "judge":
		w.layers = []middleware.Layer{{Name: "test", Wrap: w.judge}}
	case "tokens": // of one principal
		w.o.Authenticate = func(_ context.Context, credential string) (Principal, error) {
			if !slices.Contains(strings.Fields(value), credential) {
				return Principal{}, errors.New("unknown")
			}
			return Principal{ID: "its user", Value: credential}, nil
		}
	case "idle":
		w.o.Idle, _ = time.ParseDuration(value)
	case "origin":
		w.o.Origins = append(w.o.Origins, value)
	case "host":
		w.o.Hosts = append(w.o.Hosts, value)
	case "metadata":
		w.o.Metadata = value
	case "keys": // each is its own principal
		w.o.Authenticate = func(_ context.Context, credential string) (Principal, error) {
			switch credential {
			case "down":
				return Principal{}, ErrUnavailable
			case "weak":
				return Principal{}, ErrScope
			}
			if strings.Contains(" "+value+" ", " "+credential+" ") {
				return Principal{ID: credential}, nil
			}
			return Principal{}, errors.New("unknown")
		}
	case "scope":
		w.o.Scope = value
	case "conversations":
		w.o.Conversation = func(m *wire.Message) string { return m.Get("params", "_meta", "conversation").Text() }
	default:
		return errors.New("unknown option")
	}
	return nil
}

// openSession shakes hands: NAME [REVISION] [Header=Value...].
func (w *world) openSession(rest string) error {
	fields := strings.Fields(rest)
	name, revision, headers := fields[0], "2025-06-18", ""
	if len(fields) > 1 && !strings.Contains(fields[1], "=") {
		revision = fields[1]
		headers = strings.Join(fields[2:], " ")
	} else {
		headers = strings.Join(fields[1:], " ")
	}
	server := len(w.servers) + 1
	for _, step := range []string{
		fmt.Sprintf(`send init-%s POST - %s | {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"%s","capabilities":{}}}`, name, headers, revision),
		fmt.Sprintf(`s%d says {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"%s","capabilities":{}}}`, server, revision),
		fmt.Sprintf(`resp init-%s 200`, name),
	} {
		if err := w.step(step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if strings.HasPrefix(step, "send") {
			synctest.Wait()
			if _, err := w.servers[server-1].In.ReadLine(time.Second); err != nil {
				return err
			}
		}
	}
	w.sessions[name] = w.exchanges["init-"+name].resp.Header.Get(sessionHeader)
	if w.sessions[name] == "" {
		return errors.New("no session id")
	}
	_, _ = io.Copy(io.Discard, w.exchanges["init-"+name].body)
	return nil
}

// send sends a request: NAME METHOD SESSION [Header=Value...] [| BODY]. A value is
// unescaped as in a URL; without one the header is left out.
func (w *world) send(rest string) error {
	w.start()
	head, body, hasBody := strings.Cut(rest, " |")
	fields := strings.Fields(head)
	name, method, session := fields[0], fields[1], fields[2]
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour) // of the world's clock
	var from io.Reader
	if hasBody {
		from = strings.NewReader(unescape(strings.TrimPrefix(body, " ")))
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:8333/mcp", from)
	if err != nil {
		cancel()
		return err
	}
	if id, ok := w.sessions[session]; ok {
		r.Header.Set(sessionHeader, id)
	} else if session != "-" {
		r.Header.Set(sessionHeader, session)
	}
	r.Header.Set("Accept", "text/event-stream, application/json")
	if hasBody {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range fields[3:] {
		key, _, _ := strings.Cut(f, "=")
		r.Header.Del(key)
	}
	for _, f := range fields[3:] {
		key, value, _ := strings.Cut(f, "=")
		value = unescape(value)
		switch {
		case key == "Host":
			r.Host = value
		case key == "Query":
			r.URL.RawQuery = value
		case key == "Chunked":
			r.ContentLength = -1
		case value == "":
		default:
			r.Header.Add(key, value)
		}
	}
	x := &clientExchange{cancel: cancel, done: make(chan struct{})}
	w.exchanges[name] = x
	go func() {
		defer close(x.done)
		if x.resp, x.err = w.client.Do(r); x.err == nil {
			x.body = bufio.NewReader(x.resp.Body)
		}
	}()
	synctest.Wait()
	return nil
}

// unescape resolves the escapes of a URL. A number between << and >> is that many letters.
func unescape(s string) string {
	if before, rest, ok := strings.Cut(s, "<<"); ok {
		number, after, _ := strings.Cut(rest, ">>")
		n, _ := strconv.Atoi(number)
		s = before + strings.Repeat("x", n) + after
	}
	if u, err := url.PathUnescape(s); err == nil {
		s = u
	}
	return s
}

// expectResponse checks status and headers: NAME STATUS [Header=Value...].
func (w *world) expectResponse(fields []string) error {
	x := w.exchanges[fields[0]]
	select {
	case <-x.done:
	case <-time.After(time.Hour):
		return errors.New("no response")
	}
	if x.err != nil {
		return x.err
	}
	if got := fmt.Sprint(x.resp.StatusCode); got != fields[1] {
		b, _ := io.ReadAll(x.body)
		return fmt.Errorf("status %s: %s", got, b)
	}
	for _, f := range fields[2:] {
		key, want, _ := strings.Cut(f, "=")
		if got := strings.Join(x.resp.Header.Values(key), ", "); got != unescape(want) {
			return fmt.Errorf("%s is %q", key, got)
		}
	}
	return nil
}

// expectBody checks what comes in a body.
func (w *world) expectBody(what, name, want string) error {
	x := w.exchanges[name]
	<-x.done
	if x.err != nil {
		return x.err
	}
	want = unescape(want)
	switch what {
	case "body":
		got, err := io.ReadAll(x.body)
		if err != nil || string(got) != want {
			return fmt.Errorf("got %s (%v)", got, err)
		}
		return nil
	case "cut":
		if b, err := io.ReadAll(x.body); err == nil {
			return fmt.Errorf("ended in good order: %s", b)
		}
		return nil
	}
	got := x.next()
	for what != "comment" && got == ":\n" {
		got = x.next()
	}
	expected := map[string]string{"event": "event: message\ndata: " + want + "\n", "comment": ":\n", "end": "EOF"}[what]
	if got != expected {
		return fmt.Errorf("got %q", got)
	}
	return nil
}

// next returns the next event or comment of a stream.
func (x *clientExchange) next() string {
	var b strings.Builder
	for {
		line, err := x.body.ReadString('\n')
		if err == io.EOF && b.Len() == 0 && line == "" {
			return "EOF"
		}
		if err != nil {
			return b.String() + line + err.Error()
		}
		if line == "\n" {
			return b.String()
		}
		b.WriteString(line)
	}
}

// serverStep acts on the i-th server that was started.
func (w *world) serverStep(i int, rest string) error {
	synctest.Wait()
	w.mu.Lock()
	n := len(w.servers)
	w.mu.Unlock()
	what, text, _ := strings.Cut(rest, " ")
	if what == "none" {
		if n >= i {
			return errors.New("it was started")
		}
		return nil
	}
	if n < i {
		return errors.New("it was not started")
	}
	s := w.servers[i-1]
	switch what {
	case "gets":
		line, err := s.In.ReadLine(time.Minute)
		if got := w.ids.shorten(string(line)); err != nil || got != unescape(text)+"\n" {
			return fmt.Errorf("it got %s (%v)", got, err)
		}
	case "says":
		_, err := s.Out.Write([]byte(w.ids.lengthen(unescape(text)) + "\n"))
		synctest.Wait()
		return err
	case "begins": // a line that it does not end
		_, err := s.Out.Write([]byte(unescape(text)))
		synctest.Wait()
		return err
	case "drips": // a line, byte by byte
		for _, b := range []byte(unescape(text) + "\n") {
			if _, err := s.Out.Write([]byte{b}); err != nil {
				return err
			}
			synctest.Wait()
		}
	case "quiet":
		if s.In.Len() > 0 {
			line, _ := s.In.ReadLine(0)
			return fmt.Errorf("it got %s", line)
		}
	case "gone":
		select {
		case <-s.Stopping():
		default:
			return errors.New("it runs")
		}
	case "runs":
		select {
		case <-s.Stopping():
			return errors.New("it was stopped")
		default:
		}
	case "exits":
		s.Exit(errors.New(text))
		synctest.Wait()
	default:
		return errors.New("unknown command of a server")
	}
	return nil
}

// idNames has the ids of the front's own requests, which are random numbers: a script calls them
// "attache-1", "attache-2" in the order in which they come.
type idNames []string

// ownID is a number of 31 bits: cJSON has no longer ints, and jsonlite writes 16 digits as 4.2e+15.
var ownID = regexp.MustCompile(`\b(1[0-9]{9}|2[01][0-9]{8})\b`)

func (n *idNames) shorten(line string) string {
	return ownID.ReplaceAllStringFunc(line, func(id string) string {
		if !slices.Contains(*n, id) {
			*n = append(*n, id)
		}
		return fmt.Sprintf(`"attache-%d"`, slices.Index(*n, id)+1)
	})
}

func (n *idNames) lengthen(line string) string {
	for i, id := range *n {
		line = strings.ReplaceAll(line, fmt.Sprintf(`"attache-%d"`, i+1), id)
	}
	return line
}

// A memoryStore keeps sessions without a file. Each of them belongs to nobody, to the front
// of the world, or to another front.
type memoryStore struct {
	mu    sync.Mutex
	saved map[sessions.Key]sessions.Session
	own   map[sessions.Key]bool
	other string // the address of another front, which has all sessions that are not own
	alive string // the address of another front, which has none
	down  bool
}

var errDown = errors.New("the database is down")

// Save implements sessions.Store.
func (m *memoryStore) Save(_ context.Context, k sessions.Key, s sessions.Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errDown
	}
	m.saved[k], m.own[k] = s, true
	return nil
}

// Take implements sessions.Store.
func (m *memoryStore) Take(_ context.Context, k sessions.Key) (sessions.Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.saved[k]
	switch {
	case m.down:
		return s, errDown
	case !ok:
		return s, sessions.ErrNone
	case m.other != "" && !m.own[k]:
		return s, sessions.ErrElsewhere
	}
	m.own[k] = true
	return s, nil
}

// Leave implements sessions.Store.
func (m *memoryStore) Leave(_ context.Context, k sessions.Key, ended bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errDown
	}
	if m.own[k] {
		delete(m.own, k)
		if ended {
			delete(m.saved, k)
		}
	}
	return nil
}

// Elsewhere implements sessions.Store.
func (m *memoryStore) Elsewhere(_ context.Context, k sessions.Key) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.other != "" {
		return m.other, nil
	}
	return m.alive, nil
}

// A pipeListener listens in memory, and says that it is on the loopback interface.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

type loopbackConn struct{ net.Conn }

func (loopbackConn) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8333}
}

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- loopbackConn{server}:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return loopbackConn{}.LocalAddr() }
