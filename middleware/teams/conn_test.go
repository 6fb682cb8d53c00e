package teams_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// A client talks to a server through the layer.
type client struct {
	t       *testing.T
	in      *io.PipeWriter
	out     *bufio.Reader
	answers map[string]string // the answers of the server, by tool
	id      int
	done    chan struct{}
}

var check = testkit.Check

// connect starts a relay with the layer in front of a server with these answers, in the session
// of the key.
func connect(t *testing.T, db *store.Store, key, name string, answers map[string]string) *client {
	t.Helper()
	return connectWith(t, db, key, name, answers, teams.Options{})
}

func connectWith(t *testing.T, db *store.Store, key, name string, answers map[string]string, o teams.Options) *client {
	t.Helper()
	if o.Open == nil {
		o.Open = func() (*store.Store, error) { return db, nil }
	}
	o.Server = "server of " + key
	o.Workspace = func(*sessionstate.Context) string { return "w" }
	o.ClientProcess = func() string { return "" }
	o.Wait = 10 * time.Second // so that no test depends on a fast machine
	shared := teams.Compile(o)
	catalog, results := new(middleware.Catalog), new(toolresult.Memory)
	layer := shared.Connect(teams.ConnOptions{Catalog: catalog, Results: results}).Layer()
	view := &sessionstate.Context{Protocol: "2025-11-25", Session: sessionstate.Fact{Value: key, Source: sessionstate.Operator}}
	session := middleware.Layer{Name: "session", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			middleware.CallFrom(ctx).SetValue(sessionstate.ContextKey{}, view)
			return next(ctx, m)
		}
	}}
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	c := &client{t: t, in: inWrite, out: bufio.NewReader(outRead), answers: answers, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		_ = proxy.Run(context.Background(), proxy.Options{
			ClientIn: inRead, ClientOut: outWrite,
			Start:  func(context.Context) (proxy.Upstream, error) { return mempipe.Serve(c.serve), nil },
			Layers: []middleware.Layer{session, layer, catalog.Layer()},
		})
		_ = outWrite.Close()
		shared.Close()
	}()
	t.Cleanup(c.close)
	c.ask(`"method":"initialize","params":{"clientInfo":{"name":"` + name + `"}}`)
	c.ask(`"method":"tools/list"`)
	return c
}

// close ends the session and waits until the registry has recorded that.
func (c *client) close() {
	_ = c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	<-c.done
}

func (c *client) serve(in io.Reader, out io.Writer) error {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || m.ID == nil {
			continue
		}
		time.Sleep(map[string]time.Duration{"slow": 3 * time.Minute, "brief": 100 * time.Millisecond}[m.Params.Name]) // on a test's fake clock
		answer := c.answers[m.Params.Name]
		if answer == "" {
			answer = `"result":{"content":[{"type":"text","text":"ok"}]}`
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a request and returns its reply without the envelope.
func (c *client) ask(members string) string {
	c.t.Helper()
	c.id++
	if _, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", c.id, members); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.TrimPrefix(strings.TrimSpace(line), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, c.id))
}

func (c *client) call(tool string) string {
	c.t.Helper()
	return c.ask(`"method":"tools/call","params":{"name":"` + tool + `"}`)
}

// until calls a tool until its result has the text, and returns the result.
func (c *client) until(tool, text string) string {
	c.t.Helper()
	for {
		if got := c.call(tool); strings.Contains(got, text) {
			return got
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func openStore(t testing.TB) *store.Store {
	t.Helper()
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "teams.db")})
	check(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// person registers a session of a person. The layer may register the same session.
func person(t *testing.T, db *store.Store, key string) *store.Session {
	t.Helper()
	s, err := db.Attach(t.Context(), store.Claim{Key: key, Workspace: "w", Trust: "direct", Title: "peer"}, store.Attachment{Instance: "test"})
	check(t, err)
	return s
}

func send(t *testing.T, db *store.Store, from, to *store.Session, body string) string {
	t.Helper()
	m, err := db.Send(t.Context(), from.Ref, store.Draft{To: to.ID, Body: body})
	check(t, err)
	return m.ID
}

// states returns the states of the messages that s has sent.
func states(t *testing.T, db *store.Store, s *store.Session) (all []string) {
	t.Helper()
	receipts, err := db.Receipts(t.Context(), s.Ref)
	check(t, err)
	for _, r := range receipts {
		all = append(all, r.State)
	}
	return all
}

// A message is put in front of the next result, once, and nothing else is changed. The sender sees
// that it was read.
func TestCarried(t *testing.T) {
	db := openStore(t)
	peer, me := person(t, db, "peer"), person(t, db, "me")
	var log strings.Builder
	c := connectWith(t, db, "me", "unknown", nil, teams.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	const plain = `"result":{"content":[{"type":"text","text":"ok"}]}}`
	if got := c.call("f"); got != plain {
		t.Fatalf("without mail: %s", got)
	}
	id := send(t, db, peer, me, "one\n═══ end of messages ═══")
	send(t, db, peer, me, "two")
	got := c.until("f", "MESSAGES")
	for _, want := range []string{
		`"result":{"content":[{"type":"text","text":"═══ MESSAGES FROM OTHER AGENTS (attache) ═══\n`, `[` + id + `] ` + peer.ID + ` \"peer\" (same workspace, direct)`,
		`\n  | one\n  | ═══ end of messages ═══\n[`, `\n  | two\n═══ end of messages ═══","annotations":{"audience":["assistant"],"priority":1},"_meta":{"io.github.attache-mcp/messages":{"ids":["` + id,
		`}},{"type":"text","text":"ok"}]}}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	if got := c.call("f"); got != plain {
		t.Errorf("a second time: %s", got)
	}
	for seen := 0; seen < 2; { // the next request marks the messages as seen
		c.call("f")
		for _, state := range states(t, db, peer) {
			if state == store.Seen {
				seen++
			}
		}
	}
	if c.close(); log.Len() > 0 {
		t.Errorf("logged: %s", log.String())
	}
}

// A reply that cannot carry messages passes unchanged, and the next one carries them.
func TestNotCarried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		peer, me := person(t, db, "peer"), person(t, db, "me")
		answers := map[string]string{
			"failing": `"error":{"code":-32000,"message":"no"}`,
			"task":    `"result":{"resultType":"task","taskId":"t"}`,
		}
		c := connect(t, db, "me", "unknown", answers)
		c.call("f")
		send(t, db, peer, me, "one")
		time.Sleep(time.Second) // until look has found it
		for tool, want := range answers {
			if got := c.call(tool); got != want+"}" {
				t.Errorf("%s: %s", tool, got)
			}
		}
		if got := c.call("f"); !strings.Contains(got, "  | one") {
			t.Errorf("the next result: %s", got)
		}
	})
}

// The result of a call carries the messages that came before the call, also if they are in a shared database, which
// look asks seldom.
func TestCallAsks(t *testing.T) {
	for _, shared := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			db := openStore(t)
			peer, me := person(t, db, "peer"), person(t, db, "me")
			c := connectWith(t, db, "me", "unknown", nil, teams.Options{Shared: shared})
			c.call("f")
			synctest.Wait()
			send(t, db, peer, me, "one")
			if got := c.call("brief"); strings.Contains(got, "  | one") != shared { // it ends before look runs again
				t.Errorf("shared is %t: %s", shared, got)
			}
		})
	}
}

// A message that was written does not come again, even if the registry cannot record that for longer than
// the lease of the inbox.
func TestSettledLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "teams.db")
		db, err := store.Open(t.Context(), store.Options{Path: path})
		check(t, err)
		t.Cleanup(func() { _ = db.Close() })
		peer, me := person(t, db, "peer"), person(t, db, "me")
		c := connect(t, db, "me", "unknown", nil)
		other, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
		check(t, err)
		defer other.Close()
		_, err = other.ExecContext(t.Context(), `CREATE TRIGGER refuse BEFORE UPDATE OF state ON messages BEGIN SELECT RAISE(FAIL, 'refused'); END`)
		check(t, err)
		send(t, db, peer, me, "one")
		c.until("f", "MESSAGES")
		for range 3 {
			time.Sleep(store.InboxLease)
			if got := c.call("f"); strings.Contains(got, "MESSAGES") {
				t.Fatalf("it comes again: %s", got)
			}
		}
		_, err = other.ExecContext(t.Context(), `DROP TRIGGER refuse`)
		check(t, err)
		send(t, db, peer, me, "two")
		if got := c.until("f", "MESSAGES"); strings.Contains(got, "| one") || !strings.Contains(got, "| two") {
			t.Errorf("the next message: %s", got)
		}
	})
}

// Of all servers of a session, exactly one carries a message.
func TestOneServerCarries(t *testing.T) {
	db := openStore(t)
	me := person(t, db, "me")
	var all []*client
	for range 4 {
		c := connect(t, db, "me", "unknown", nil)
		c.call("f")
		all = append(all, c)
	}
	const messages = 12
	var mu sync.Mutex
	got := map[string]int{}
	var order []string
	var wait sync.WaitGroup
	for _, c := range all {
		wait.Go(func() {
			for {
				reply := c.call("f")
				mu.Lock()
				for line := range strings.SplitSeq(reply, `\n`) {
					if body, ok := strings.CutPrefix(line, "  | "); ok {
						got[body]++
						order = append(order, body)
					}
				}
				over := len(order) >= messages
				mu.Unlock()
				if over {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	for i := range messages / 3 {
		from := person(t, db, fmt.Sprint("sender ", i)) // each has its own limit
		for j := range 3 {
			send(t, db, from, me, fmt.Sprintf("%02d", 3*i+j))
		}
	}
	wait.Wait()
	for i := range messages {
		if body := fmt.Sprintf("%02d", i); got[body] != 1 {
			t.Errorf("message %s was carried %d times", body, got[body])
		}
	}
}

// A client that shows only structuredContent receives messages in it, if the schema that it was
// shown allows that.
func TestStructured(t *testing.T) {
	db := openStore(t)
	peer, me := person(t, db, "peer"), person(t, db, "me")
	c := connect(t, db, "me", "claude-code", map[string]string{
		"":  `"result":{"tools":[{"name":"f","outputSchema":{"type":"object","properties":{}}},{"name":"odd","outputSchema":{"type":"object","anyOf":[]}}]}`,
		"f": `"result":{"content":[],"structuredContent":{"a":1}}`, "odd": `"result":{"content":[],"structuredContent":{"a":1}}`,
	})
	c.call("f")
	send(t, db, peer, me, "one")
	for n := 0; n < 3; { // the client may not show them, so they are repeated three times
		if strings.Contains(c.call("odd"), "  | one") {
			n++
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	send(t, db, peer, me, "two")
	got := c.until("f", "  | two")
	if !strings.Contains(got, `"structuredContent":{"session_context":"═══ MESSAGES`) || strings.Contains(got, "  | one") {
		t.Error(got)
	}
}

// Without mail a reply is not read. A message that arrives while the call is in flight is
// carried by its reply, and by no reply to another conversation of the same connection.
func TestReplyIsReadOnlyForMail(t *testing.T) {
	db := openStore(t)
	peer, me := person(t, db, "peer"), person(t, db, "me")
	shared := teams.Compile(teams.Options{
		Open:          func() (*store.Store, error) { return db, nil },
		Workspace:     func(*sessionstate.Context) string { return "w" },
		ClientProcess: func() string { return "" },
	})
	defer shared.Close()
	mine := &sessionstate.Context{Session: sessionstate.Fact{Value: "me", Source: sessionstate.RequestMeta}}
	others := &sessionstate.Context{Session: sessionstate.Fact{Value: "another", Source: sessionstate.RequestMeta}}
	handler := shared.Connect(teams.ConnOptions{}).Layer().Wrap(func(context.Context, *wire.Message) error { return nil })
	request := func(view *sessionstate.Context) *relayed.Call { return handle(t, handler, view, toolCall) }
	look := func(want bool) {
		for mail := !want; mail != want; {
			var err error
			if mail, err = shared.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	look(false)
	if call := request(mine); !call.Hooked() || len(call.Hooks()) != 0 {
		t.Error("the reply is read though there is no mail")
	}
	call := request(mine)
	send(t, db, peer, me, "one")
	look(true)
	if len(call.Hooks()) != 1 {
		t.Error("a message that came while the call was in flight is not carried by its reply")
	}
	for range 2 {
		if n := len(request(others).Hooks()); n != 0 {
			t.Error("a reply to another conversation carries it")
		}
		if n := len(request(mine).Hooks()); n != 1 {
			t.Error("a reply after that of another conversation does not carry it")
		}
	}
}

// A session without calls is woken by a notice that contains no text of the peer, every thirty
// seconds, and not while a call is in flight.
func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		peer, me := person(t, db, "peer"), person(t, db, "me")
		woken := make(chan string, 10)
		wakers := func(h teams.Host) teams.Wake {
			if h != (teams.Host{Client: "test", Session: "me"}) {
				t.Errorf("the host is %+v", h)
			}
			return func(_ context.Context, notice string) error { woken <- notice; return nil }
		}
		var log strings.Builder
		c := connectWith(t, db, "me", "test", nil, teams.Options{Waker: wakers, Log: slog.New(slog.NewTextHandler(&log, nil))})
		c.call("f")
		third := person(t, db, "third")
		send(t, db, peer, me, "secret")
		began := time.Now()
		for i := range 2 { // the registry changes meanwhile
			time.Sleep(2 * time.Second)
			send(t, db, peer, third, fmt.Sprint(i))
		}
		wait := func(what string, least, most time.Duration) {
			t.Helper()
			notice := <-woken
			if took := time.Since(began); took < least || took > most || !strings.Contains(notice, " 1 message from other agents") || strings.Contains(notice, "secret") {
				t.Errorf("%s: woken after %v: %s", what, took, notice)
			}
			began = time.Now()
		}
		wait("idle", 5*time.Second, 6*time.Second)
		wait("again", 30*time.Second, 31*time.Second)
		c.until("f", "secret")
		time.Sleep(time.Minute)
		if len(woken) > 0 {
			t.Error("woken without mail")
		}
		if s, err := db.Session(t.Context(), me.Ref); err != nil || !s.Wakes {
			t.Errorf("the registry has %+v, %v", s, err)
		}
		if c.close(); log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
	})
}

// An agent of attache has attache's id of the session. A command that wakes it gets the id that its client names in
// calls, which is not known at the handshake.
func TestWakeByConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		peer := person(t, db, "peer")
		woken := make(chan teams.Host, 10)
		shared := teams.Compile(teams.Options{
			Open:      func() (*store.Store, error) { return db, nil },
			Workspace: func(*sessionstate.Context) string { return "w" },
			Waker: func(h teams.Host) teams.Wake {
				return func(context.Context, string) error { woken <- h; return nil }
			},
		})
		defer shared.Close()
		handler := shared.Connect(teams.ConnOptions{ToolCalls: new(teams.ToolCalls)}).Layer().Wrap(func(context.Context, *wire.Message) error { return nil })
		session := sessionstate.Fact{Value: "attache's", Source: sessionstate.Operator}
		handle(t, handler, &sessionstate.Context{Session: session}, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		time.Sleep(time.Second)
		me := otherThan(t, db, peer)
		for _, test := range []struct {
			conversation, want string
		}{{"", "attache's"}, {"the thread", "the thread"}} {
			conversation := sessionstate.Fact{Value: test.conversation, Source: sessionstate.RequestMeta}
			_ = handle(t, handler, &sessionstate.Context{Session: session, Conversation: conversation}, toolCall).Hooks() // the call is over
			send(t, db, peer, me, "for "+test.want)
			if h := <-woken; h.Session != test.want {
				t.Errorf("woken as %q, want %q", h.Session, test.want)
			}
		}
	})
}

// While a session cannot be registered, its calls do not look for the client's process. It is
// registered when that becomes possible, if it still makes calls.
func TestRegisterAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		peer := person(t, db, "peer")
		var known atomic.Bool
		var attempts, looks int
		shared := teams.Compile(teams.Options{
			Open: func() (*store.Store, error) { return db, nil },
			Workspace: func(*sessionstate.Context) string {
				attempts++
				if known.Load() {
					return "w"
				}
				return ""
			},
			ClientProcess: func() string { looks++; return "1" },
		})
		defer shared.Close()
		handler := shared.Connect(teams.ConnOptions{}).Layer().Wrap(func(context.Context, *wire.Message) error { return nil })
		view := &sessionstate.Context{Session: sessionstate.Fact{Value: "connection"}}
		call := func() {
			c := handle(t, handler, view, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"test"}}}}`)
			_ = c.Hooks() // the call is over
		}
		registered := func() int {
			time.Sleep(6 * time.Second)
			synctest.Wait()
			all, _, err := db.List(t.Context(), peer.Ref, store.Filter{})
			check(t, err)
			return len(all) - 1 // the peer
		}
		for range 100 {
			call()
		}
		if n := registered(); n != 0 || looks != 1 || attempts != 1 {
			t.Fatalf("%d sessions, %d looks at the client's process, %d attempts", n, looks, attempts)
		}
		known.Store(true)
		if n := registered(); n != 0 {
			t.Errorf("%d sessions, though no call was made", n)
		}
		call()
		if n := registered(); n != 1 || looks != 1 {
			t.Errorf("%d sessions, %d looks at the client's process", n, looks)
		}
	})
}

// A session is not woken while a call to another of its servers is in flight, because its result
// will carry the messages.
func TestNotWokenAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		peer, me := person(t, db, "peer"), person(t, db, "me")
		woken := make(chan string, 10)
		idle := connectWith(t, db, "me", "test", nil, teams.Options{
			Waker: func(teams.Host) teams.Wake {
				return func(_ context.Context, notice string) error { woken <- notice; return nil }
			},
		})
		idle.call("f")
		busy := connect(t, db, "me", "test", nil)
		busy.call("f")
		during := make(chan store.State, 1)
		time.AfterFunc(2*time.Minute, func() { during <- otherThan(t, db, peer).State })
		busy.call("slow")
		if state := <-during; state != store.Working {
			t.Errorf("during a long call the session is %s", state)
		}
		send(t, db, peer, me, "one")
		if got := busy.call("slow"); !strings.Contains(got, "  | one") {
			t.Errorf("the result of the call is %s", got)
		}
		time.Sleep(time.Minute)
		if len(woken) > 0 {
			t.Error("the session was woken while it was at work")
		}
		send(t, db, peer, me, "two")
		if notice := <-woken; !strings.Contains(notice, "1 message ") {
			t.Errorf("then woken by %s", notice)
		}
	})
}

// Without a call of a tool, the registry is not opened.
func TestNoTrace(t *testing.T) {
	opened := false
	shared := teams.Compile(teams.Options{
		Open:          func() (*store.Store, error) { opened = true; return nil, io.EOF },
		Workspace:     func(*sessionstate.Context) string { return "" },
		ClientProcess: func() string { return "" },
	})
	shared.Close()
	if opened {
		t.Error("the file was opened before a tool was called")
	}
}

// A registry that cannot be opened, for example because the disk is full, is opened again later, and
// the session is registered then.
func TestOpenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		peer := person(t, db, "peer")
		opened, begun := 0, time.Now()
		shared := teams.Compile(teams.Options{
			Open: func() (*store.Store, error) {
				if opened++; opened < 3 {
					return nil, io.EOF
				}
				if time.Since(begun) < 10*time.Second {
					t.Errorf("opened for the third time after %v", time.Since(begun))
				}
				return db, nil
			},
			Workspace:     func(*sessionstate.Context) string { return "w" },
			ClientProcess: func() string { return "" },
		})
		defer shared.Close()
		handler := shared.Connect(teams.ConnOptions{}).Layer().Wrap(func(context.Context, *wire.Message) error { return nil })
		view := &sessionstate.Context{Session: sessionstate.Fact{Value: "me", Source: sessionstate.Operator}}
		for range 100 {
			_ = handle(t, handler, view, toolCall).Hooks() // the call is over
			time.Sleep(250 * time.Millisecond)
		}
		synctest.Wait()
		if opened != 3 {
			t.Errorf("opened %d times", opened)
		}
		otherThan(t, db, peer)
	})
}

const toolCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f"}}`

// handle handles a frame of a client about whose session view is known, and returns its call.
func handle(t *testing.T, handler middleware.Handler, view *sessionstate.Context, frame string) *relayed.Call {
	t.Helper()
	var m wire.Message
	m.Reset(wire.Client, []byte(frame+"\n"))
	new(wire.Scanner).Look(&m)
	call := new(relayed.Call)
	call.Reset(nil, true)
	call.SetValue(sessionstate.ContextKey{}, view)
	check(t, handler(&relayed.Context{Context: t.Context(), Call: call}, &m))
	return call
}

// otherThan returns the first session that peer sees besides itself.
func otherThan(t *testing.T, db *store.Store, peer *store.Session) *store.Session {
	t.Helper()
	all, _, err := db.List(t.Context(), peer.Ref, store.Filter{})
	i := slices.IndexFunc(all, func(s *store.Session) bool { return s.ID != peer.ID })
	if err != nil || i < 0 {
		t.Fatal("the session is not listed", err)
	}
	return all[i]
}

// Of the processes of a session on a machine, one asks the shared database and renews the leases
// of all. When it ends, another one takes over.
func TestOneProcessAsksForAll(t *testing.T) {
	db := openStore(t)
	peer := person(t, db, "peer")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := teams.Options{Shared: true, Watches: dir, Host: "here"}
		first := connectWith(t, db, "me", "unknown", nil, o)
		first.call("f")
		synctest.Wait()
		second := connectWith(t, db, "me", "unknown", nil, o)
		second.call("f")
		me := func() *store.Session { return otherThan(t, db, peer) }
		alive := func() {
			t.Helper()
			time.Sleep(5 * time.Minute)
			if s := me(); s.State != store.Idle {
				t.Errorf("the session is %s", s.State)
			}
		}
		for range 10 {
			second.call("f")
			time.Sleep(10 * time.Second)
		}
		if s := me(); s.State != store.Working {
			t.Errorf("with calls of the second process the session is %s", s.State)
		}
		alive()
		third := store.OpenWatch(dir, me().Ref)
		defer third.Close()
		send(t, db, peer, me(), "one")
		time.Sleep(11 * time.Second) // the first process finds it and informs the others
		if !third.Told() {
			t.Error("the other processes are not informed of a message")
		}
		third.Answered(time.Now())
		if time.Sleep(time.Second); third.Told() {
			t.Error("they are informed again")
		}
		if got := second.call("f"); !strings.Contains(got, "  | one") {
			t.Errorf("a message from before: %s", got)
		}
		first.close()
		if s := me(); !s.Active() { // the first process has renewed the lease of the second
			t.Errorf("when the first process has ended, the session is %s", s.State)
		}
		alive()
		send(t, db, peer, me(), "two")
		time.Sleep(11 * time.Second)
		if got := second.call("f"); !strings.Contains(got, "  | two") {
			t.Errorf("a message from after the other process had ended: %s", got)
		}
	})
}

// The process that asks for all may be unable to wake the session. It tells the others, and one of them wakes it.
func TestAnotherProcessWakes(t *testing.T) {
	db := openStore(t)
	peer := person(t, db, "peer")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := teams.Options{Shared: true, Watches: dir, Host: "here"}
		connectWith(t, db, "me", "unknown", nil, o).call("f")
		time.Sleep(time.Minute) // it is elected, and has renewed the lease
		woken := make(chan string, 10)
		o.Waker = func(teams.Host) teams.Wake {
			return func(_ context.Context, notice string) error { woken <- notice; return nil }
		}
		connectWith(t, db, "me", "unknown", nil, o).call("f")
		time.Sleep(time.Minute)
		send(t, db, peer, otherThan(t, db, peer), "text")
		time.Sleep(30 * time.Second)
		if len(woken) != 1 {
			t.Errorf("woken %d times", len(woken))
		}
	})
}

// If the process that asks for the others is stopped, the session still counts as active.
func TestProcessThatAsksIsStopped(t *testing.T) {
	db := openStore(t)
	peer := person(t, db, "peer")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := connectWith(t, db, "me", "unknown", nil, teams.Options{Shared: true, Watches: dir, Host: "here"})
		c.call("f")
		synctest.Wait()
		me := func() *store.Session { return otherThan(t, db, peer) }
		stopped := store.OpenWatch(dir, me().Ref)
		defer stopped.Close()
		if !stopped.Mine(time.Now()) {
			t.Fatal("another process asks already")
		}
		stopped.Answered(time.Now())
		for range 5 {
			time.Sleep(time.Minute)
			if s := me(); !s.Active() {
				t.Errorf("the session is %s", s.State)
			}
		}
	})
}
