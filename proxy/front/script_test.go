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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// TestScripts runs the scripts in testdata. Each section is a test case in its own synctest bubble,
// with a new world. The comment in legacy.txtar lists the commands.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		check(t, err)
		for _, section := range txtar.Parse(data).Files {
			t.Run(section.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { newWorld(t).run(string(section.Data)) })
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
	store     *memoryStore // w.o.Store, or nil
	ids       idNames
	http2     bool
	buffer    int // bytes that a server accepts before it reads them; 0 for no limit
	children  int // servers that may run; 0 for no limit
	hold      int // proxy.Options.Hold
	layers    []middleware.Layer
	judged    []string // messages that judge has seen, as method=sender
	sessions  map[string]string
	exchanges map[string]*clientExchange
	raw       map[string]net.Conn

	mu      sync.Mutex
	servers []*mempipe.Server
	running int // open sessions
}

// A clientExchange is a request as its client sees it.
type clientExchange struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when resp or err is set
	resp   *http.Response
	err    error
	body   *bufio.Reader
	ids    []string // of events
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, sessions: map[string]string{}, exchanges: map[string]*clientExchange{}, raw: map[string]net.Conn{}, listener: newPipeListener()}
	w.o = Options{Limits: DefaultLimits(), Open: w.open}
	return w
}

func (w *world) open(o Opening) (Relay, error) {
	w.o.Log.Info("open", "who", o.Who.ID, "credential", o.Credential, "resumed", o.Resumed, "stored", o.Session != "")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running++; w.children > 0 && w.running > w.children {
		w.running--
		return Relay{}, ErrBusy
	}
	return Relay{Closed: w.closed, Options: proxy.Options{Hold: w.hold, Layers: w.layers, Log: w.o.Log.With("client", "its"), Start: func(context.Context) (proxy.Upstream, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		s := mempipe.NewServer(w.buffer)
		go func() { <-s.Stopping(); s.Exit(nil) }()
		w.servers = append(w.servers, s)
		return s, nil
	}}}, nil
}

// judge is a layer that records the sender of each client message, and delays messages with the
// method "held" by a second.
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

// readReplies is a layer that reads the replies to all requests.
func readReplies(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		middleware.CallFrom(ctx).OnReply(func(context.Context, *wire.Message) error { return nil })
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

// start starts the front with the options that the script has set, unless it is running.
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

func (w *world) run(script string) {
	defer w.close()
	for n, line := range strings.Split(script, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := w.step(line); err != nil {
			w.Fatalf("line %d: %s: %v\n%s", n+1, line, err, w.log.String())
		}
	}
}

func (w *world) close() {
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

// step runs one line of a script.
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
	case "body", "event", "comment", "prime", "end", "cut":
		name, want, _ := strings.Cut(rest, " ")
		return w.expectBody(command, name, want)
	case "raw": // NAME BYTES, on a new connection
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
	case "connections": // NUMBER, of those that were opened
		if got := fmt.Sprint(w.listener.dialed.Load()); got != rest {
			return errors.New(got + " connections")
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
	case "passed": // TIME at most, since the start; the clock of a bubble starts at midnight
		d, err := time.ParseDuration(rest)
		if passed := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil && passed > d {
			err = fmt.Errorf("%v passed", passed)
		}
		return err
	case "alive": // NAME TIME, with a comment each outbox.AliveTime
		name, text, _ := strings.Cut(rest, " ")
		d, err := time.ParseDuration(text)
		for range d / outbox.AliveTime {
			if err == nil {
				time.Sleep(outbox.AliveTime)
				err = w.expectBody("comment", name, "")
			}
		}
		return err
	case "drain":
		go w.front.Drain(context.Background())
		synctest.Wait()
		return nil
	case "restart": // a new process replaces this one
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
			return fmt.Errorf("the session id is %s", id)
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
			return errors.New("this front owns the session, or it is not saved")
		}
		return nil
	case "other": // ADDRESS: another front owns the sessions that this one has left; - for none
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.other = strings.TrimPrefix(rest, "-")
		return nil
	case "another": // ADDRESS: another front runs and owns no session
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.alive = rest
		return nil
	case "taken": // ADDRESS: another front takes all sessions, and this one rechecks them
		w.store.mu.Lock()
		clear(w.store.own)
		w.store.other = rest
		w.store.mu.Unlock()
		err := w.front.Recheck(context.Background(), true)
		synctest.Wait()
		return err
	case "forgotten": // the store has lost all sessions, and this front rechecks them
		w.store.mu.Lock()
		clear(w.store.own)
		w.store.mu.Unlock()
		if err := w.front.Recheck(context.Background(), true); err != nil {
			return err
		}
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		if len(w.store.own) == 0 {
			return errors.New("the session was not saved again")
		}
		return nil
	case "renewed": // the lease of this front was renewed in time
		return w.front.Recheck(context.Background(), false)
	case "down": // yes or no: the store fails
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		w.store.down = rest == "yes"
		return nil
	case "judged": // METHOD=CREDENTIAL..., since the start
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := strings.Join(w.judged, " "); got != rest {
			return fmt.Errorf("got %s", got)
		}
		return nil
	case "log":
		if !strings.Contains(w.log.String(), rest) {
			return errors.New("the log lacks the text")
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
	case "bodies":
		l.Bodies = int64(n)
	case "hold":
		w.hold = n
	case "store":
		w.store = &memoryStore{saved: map[sessions.Key]sessions.Session{}, own: map[sessions.Key]bool{}}
		w.o.Store = w.store
	case "http2":
		w.http2 = true
	case "deaf":
		w.buffer = n
	case "children":
		w.children = n
	case "enforce":
		w.layers = []middleware.Layer{{Name: "test", Enforces: true}}
	case "judge":
		w.layers = []middleware.Layer{{Name: "test", Wrap: w.judge}}
	case "reads":
		w.layers = []middleware.Layer{{Name: "test", Wrap: readReplies}}
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

// openSession initializes a session: NAME [REVISION] [Header=Value...].
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

// send sends a request: NAME METHOD SESSION [Header=Value...] [| BODY]. Values are
// URL-escaped; an empty value removes the header.
func (w *world) send(rest string) error {
	w.start()
	head, body, hasBody := strings.Cut(rest, " |")
	fields := strings.Fields(head)
	name, method, session := fields[0], fields[1], fields[2]
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Hour) // on the bubble's clock
	var reader io.Reader
	if hasBody {
		reader = strings.NewReader(unescape(strings.TrimPrefix(body, " ")))
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:8333/mcp", reader)
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
		if of, n, ok := strings.Cut(strings.TrimPrefix(value, "@"), "@"); ok {
			number, _ := strconv.Atoi(n)
			value = w.exchanges[of].ids[number]
		}
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

// unescape decodes URL escapes, and replaces <<N>> with N letters.
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

// expectResponse checks the status and headers: NAME STATUS [Header=Value...].
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
	if x.resp.Close { // http.Transport removes the header
		x.resp.Header.Set("Connection", "close")
	}
	for _, f := range fields[2:] {
		key, want, _ := strings.Cut(f, "=")
		if got := strings.Join(x.resp.Header.Values(key), ", "); got != unescape(want) {
			return fmt.Errorf("%s is %q", key, got)
		}
	}
	return nil
}

// expectBody checks the next part of a body, or all of it.
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
			return fmt.Errorf("the body ended without an error: %s", b)
		}
		return nil
	}
	got := x.next()
	for what != "comment" && got == ":\n" {
		got = x.next()
	}
	if event, id, ok := strings.Cut(got, "id: "); ok {
		id, after, _ := strings.Cut(id, "\n")
		x.ids, got = append(x.ids, id), event+after
	}
	expected := map[string]string{"event": "event: message\ndata: " + want + "\n", "prime": "event: prime\ndata: \n", "comment": ":\n", "end": "EOF"}[what]
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

// serverStep checks or drives the i-th server that was started.
func (w *world) serverStep(i int, rest string) error {
	synctest.Wait()
	w.mu.Lock()
	n := len(w.servers)
	w.mu.Unlock()
	what, text, _ := strings.Cut(rest, " ")
	if what == "none" {
		if n >= i {
			return errors.New("the server was started")
		}
		return nil
	}
	if n < i {
		return errors.New("the server was not started")
	}
	s := w.servers[i-1]
	switch what {
	case "gets":
		line, err := s.In.ReadLine(time.Minute)
		if got := w.ids.shorten(string(line)); err != nil || got != unescape(text)+"\n" {
			return fmt.Errorf("the server got %s (%v)", got, err)
		}
	case "says":
		_, err := s.Out.Write([]byte(w.ids.lengthen(unescape(text)) + "\n"))
		synctest.Wait()
		return err
	case "begins": // LINE, without its newline
		_, err := s.Out.Write([]byte(unescape(text)))
		synctest.Wait()
		return err
	case "drips": // LINE, byte by byte
		for _, b := range []byte(unescape(text) + "\n") {
			if _, err := s.Out.Write([]byte{b}); err != nil {
				return err
			}
			synctest.Wait()
		}
	case "quiet":
		if s.In.Len() > 0 {
			line, _ := s.In.ReadLine(0)
			return fmt.Errorf("the server got %s", line)
		}
	case "gone":
		select {
		case <-s.Stopping():
		default:
			return errors.New("the server is running")
		}
	case "runs":
		select {
		case <-s.Stopping():
			return errors.New("the server was stopped")
		default:
		}
	case "exits":
		s.Exit(errors.New(text))
		synctest.Wait()
	default:
		return errors.New("unknown server command")
	}
	return nil
}

// idNames lists the ids of the front's own requests. They are random numbers; scripts call them
// "attache-1", "attache-2" and so on, in the order of their first use.
type idNames []string

// ownID matches a 31-bit number: cJSON has no longer ints, and jsonlite writes 16 digits as 4.2e+15.
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

// A memoryStore keeps sessions in memory. Each session is owned by no front, by the front
// under test, or by another front.
type memoryStore struct {
	mu    sync.Mutex
	saved map[sessions.Key]sessions.Session
	own   map[sessions.Key]bool // owned by the front under test
	other string                // the address of another front, which owns all other sessions
	alive string                // the address of another front, which owns none
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

// A pipeListener accepts in-memory connections, and reports a loopback address.
type pipeListener struct {
	conns  chan net.Conn
	dialed atomic.Int32
	done   chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
}

type loopbackConn struct{ net.Conn }

func (loopbackConn) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8333}
}

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	l.dialed.Add(1)
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
