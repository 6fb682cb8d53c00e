package teams

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// A call of a teams tool that has the workspace registers the session, although another call of the same
// session, from another connection, came later and has none.
func TestRegisterWithOwnWorkspace(t *testing.T) {
	db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "teams.db")})
	testkit.Check(t, err)
	defer func() { _ = db.Close() }()
	opening := make(chan struct{})
	shared := Compile(Options{
		Open:      func() (*store.Store, error) { <-opening; return db, nil },
		Workspace: func(view *sessionstate.Context) string { return view.Workspace.Value },
	})
	defer shared.Close()
	session := func(workspace string) (*session, *sessionstate.Context) {
		view := &sessionstate.Context{Session: sessionstate.Fact{Value: "key", Source: sessionstate.RequestMeta}}
		view = view.WithWorkspace(sessionstate.Fact{Value: workspace, Source: sessionstate.RequestMeta})
		return shared.session(view, new(toolresult.Memory)), view
	}
	m, _ := session("")
	ready := m.ready // the attempt to register it without a workspace, which waits for the registry
	_, view := session("/w")
	call := &ToolCall{c: shared.Connect(ConnOptions{}), s: m, view: view}
	session("")
	close(opening)
	<-ready
	if _, me, err := call.Session(context.Background()); err != nil || me.Workspace != "/w" {
		t.Errorf("%v, %v", me, err)
	}
}

// A session that could not be registered is tried again at once only if a call has the workspace that was unknown.
func TestLearnsWorkspace(t *testing.T) {
	fact := sessionstate.Fact{Value: "w", Source: sessionstate.RequestMeta}
	for _, test := range []struct {
		claimed string
		view    sessionstate.Context
		want    bool
	}{
		{"", sessionstate.Context{}, false},
		{"", sessionstate.Context{Workspace: fact}, true},
		{"", sessionstate.Context{WorkspaceID: fact}, true},
		{"w", sessionstate.Context{Workspace: fact, WorkspaceID: fact}, false},
	} {
		m := &session{claim: store.Claim{Workspace: test.claimed}}
		if got := m.learnsWorkspaceLocked(&test.view); got != test.want {
			t.Errorf("%q, %+v: %t", test.claimed, test.view, got)
		}
	}
}

// A call that the server never answers counts for an hour.
func TestCalling(t *testing.T) {
	m, now := new(session), time.Unix(1000, 0)
	m.last.Store(now.UnixNano())
	m.begun.Add(1)
	if !m.calling(now.Add(time.Hour-1)) || m.calling(now.Add(time.Hour)) {
		t.Error("a call does not count for an hour")
	}
	if m.ended.Add(1); m.calling(now) {
		t.Error("a call that has ended counts")
	}
}

// The handshake registers a session, so that others see it before its first call, unless the client is known to
// name the session only in its calls: it would be registered twice, and nobody would read what the first one gets.
func TestRegisterAtHandshake(t *testing.T) {
	none := sessionstate.Fact{Value: "connection"}
	named := sessionstate.Fact{Value: "its own", Source: sessionstate.HostEnvironment}
	for _, test := range []struct {
		client  string
		session sessionstate.Fact
		want    bool
	}{
		{"codex-mcp-client", none, false},
		{"factory-cli", none, false},
		{"codex-mcp-client", named, true},
		{"claude-code", named, true},
		{"gemini-cli-mcp-client", none, true},
		{"unknown", none, true},
		{"cursor-vscode", none, false}, // its process holds many conversations
		{"windsurf-client", none, false},
		{"windsurf-client", named, true},
	} {
		shared := Compile(Options{
			Open:          func() (*store.Store, error) { return nil, store.ErrUnavailable },
			Workspace:     func(*sessionstate.Context) string { return "w" },
			ClientProcess: func() string { return "1" },
		})
		conn, other := shared.Connect(ConnOptions{ToolCalls: new(ToolCalls)}), shared.Connect(ConnOptions{})
		observe := func(conn *Conn, frame string) (registered bool) {
			var m wire.Message
			m.Reset(wire.Client, []byte(frame+"\n"))
			new(wire.Scanner).Look(&m)
			var call relayed.Call
			call.Reset(nil, true)
			call.SetValue(sessionstate.ContextKey{}, &sessionstate.Context{Session: test.session})
			conn.observe((*middleware.Call)(&call), &m)
			return len(shared.allSessions()) > 0
		}
		initializeOf := func(client string) string {
			return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"` + client + `"}}}`
		}
		initialize := initializeOf(test.client)
		const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		if observe(other, initialize) || observe(other, initialized) {
			t.Errorf("%s, %v: registered by the handshake with another server than that of the tools", test.client, test.session.Source)
		}
		if observe(conn, initializeOf("inspector")) || observe(conn, initialize) { // the last one counts
			t.Errorf("%s, %v: registered before the client can tell its roots", test.client, test.session.Source)
		}
		if got := observe(conn, initialized); got != test.want {
			t.Errorf("%s, %v: registered %t", test.client, test.session.Source, got)
		}
		shared.Close()
		if shared.background(func(context.Context) {}) {
			t.Error("the session works after it was closed")
		}
	}
}

// The server of the teams tools registers a session with its first frame whose session and tenant are known, and that
// is no probe.
func TestRegisterEarly(t *testing.T) {
	ada := &sessionstate.Principal{Tenant: "acme"}
	const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	none, named := sessionstate.Fact{Value: "connection"}, sessionstate.Fact{Value: "its own", Source: sessionstate.HostEnvironment}
	for _, test := range []struct {
		frame string
		late  bool // credentials come with requests
		view  sessionstate.Context
		want  bool
	}{
		{initialized, false, sessionstate.Context{Session: named}, true},
		{initialized, true, sessionstate.Context{Session: named}, false},
		{initialized, true, sessionstate.Context{Session: named, Principal: ada}, true},
		{`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, false, sessionstate.Context{Session: named}, false},
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, false, sessionstate.Context{Session: named, Modern: true}, false},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, false, sessionstate.Context{Session: named, Modern: true}, true},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"codex-mcp-client"}}}}`, false, sessionstate.Context{Session: none, Modern: true}, false},
		{`{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"codex-mcp-client"}}}}`, false, sessionstate.Context{Session: none, Modern: true}, false},
		{`{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"claude-code"}}}}`, false, sessionstate.Context{Session: named, Modern: true}, true},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, false, sessionstate.Context{Session: named}, false},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"cursor-vscode"}}}}`, false, sessionstate.Context{Session: none, Modern: true}, false},
	} {
		for _, calls := range []*ToolCalls{new(ToolCalls), nil} { // nil for another server, which registers it with the first call
			shared := Compile(Options{
				Open:            func() (*store.Store, error) { return nil, store.ErrUnavailable },
				Workspace:       func(*sessionstate.Context) string { return "w" },
				ClientProcess:   func() string { return "1" },
				LateCredentials: test.late,
			})
			var m wire.Message
			m.Reset(wire.Client, []byte(test.frame+"\n"))
			new(wire.Scanner).Look(&m)
			var call relayed.Call
			call.Reset(nil, true)
			call.SetValue(sessionstate.ContextKey{}, &test.view)
			shared.Connect(ConnOptions{ToolCalls: calls}).observe((*middleware.Call)(&call), &m)
			if m.MethodIs("prompts/list") && (call.Hooked() || string(m.Line()) != test.frame+"\n") {
				t.Errorf("%s has hooks, or became %s", test.frame, m.Line())
			}
			if got := len(shared.allSessions()) > 0; got != (test.want && calls != nil) {
				t.Errorf("%s, late %t, %+v: registered %t", test.frame, test.late, test.view.Principal, got)
			}
			shared.Close()
		}
	}
}

// The sessions of a process are limited, because clients choose their keys.
func TestMaxSessions(t *testing.T) {
	shared := Compile(Options{
		Open:      func() (*store.Store, error) { return nil, store.ErrUnavailable },
		Workspace: func(*sessionstate.Context) string { return "" },
	})
	defer shared.Close()
	for i := range maxSessions + 1 {
		view := &sessionstate.Context{Session: sessionstate.Fact{Value: strconv.Itoa(i), Source: sessionstate.RequestMeta}}
		if got := shared.session(view, new(toolresult.Memory)); (got != nil) != (i < maxSessions) {
			t.Errorf("session %d: %v", i, got)
		}
	}
}

// A process has few watches open, because each is a file.
func TestMaxWatches(t *testing.T) {
	shared := &Shared{o: Options{Watches: t.TempDir()}}
	for i := range maxWatches + 1 {
		defer shared.openWatch(store.Ref{ID: strconv.Itoa(i)}).Close()
	}
	files, err := os.ReadDir(shared.o.Watches)
	testkit.Check(t, err)
	if len(files) != maxWatches {
		t.Errorf("%d watches are open", len(files))
	}
}

func TestWait(t *testing.T) {
	for given, want := range map[time.Duration]time.Duration{0: DefaultWait, 1: 1} {
		if got := Compile(Options{Wait: given}).o.Wait; got != want {
			t.Errorf("%v becomes %v", given, got)
		}
	}
}

// A cancelRelay is the relay of a call. It says whether the client has cancelled the call.
type cancelRelay struct {
	relayed.Relay
	cancelled bool
}

func (r cancelRelay) Cancelled() bool { return r.cancelled }

// If a call is cancelled before or after its tool has taken messages, the messages are queued again at once. The same
// holds if they were taken too late for the reply. If the answer was written, its messages are not queued again.
func TestCancelledToolCall(t *testing.T) {
	for _, when := range []string{"before", "after", "too late", "never"} {
		db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "teams.db")})
		check := func(err error) {
			if t.Helper(); err != nil {
				t.Fatal(err)
			}
		}
		check(err)
		defer func() { _ = db.Close() }()
		var me, peer *store.Session
		for key, s := range map[string]**store.Session{"me": &me, "peer": &peer} {
			*s, err = db.Attach(t.Context(), store.Claim{Key: key, Workspace: "w", Trust: "direct"}, store.Attachment{Instance: "test"})
			check(err)
		}
		_, err = db.Send(t.Context(), peer.Ref, store.Draft{To: me.ID, Body: "hello"})
		check(err)
		shared := Compile(Options{Open: func() (*store.Store, error) { return db, nil }})
		tool := &ToolCall{c: shared.Connect(ConnOptions{ToolCalls: new(ToolCalls)}), s: new(session)}
		var call relayed.Call
		call.Reset(cancelRelay{cancelled: when != "never"}, true)
		take := func() {
			taking, err := tool.Take(t.Context(), db, me, false)
			check(err)
			if len(taking.Messages) != 1 {
				t.Fatalf("took %+v", taking)
			}
		}
		switch when {
		case "never", "after":
			take()
		case "too late":
			d := &delivery{c: tool.c, s: tool.s, done: make(chan struct{})}
			d.taking.Store(new(store.Taking))
			d.take(t.Context(), me.Ref)
		}
		(&answer{tool, (*middleware.Call)(&call), "id"}).Wanted()
		if when == "before" {
			take()
		}
		if when == "never" {
			check((&answer{tool, (*middleware.Call)(&call), "id"}).Reply(t.Context(), nil))
			call.Sent()[0](nil)
		}
		shared.Close()
		if taking, err := db.Take(t.Context(), me.Ref, store.TakeOption{Limit: 1}); err != nil || len(taking.Messages) == 1 != (when != "never") {
			t.Errorf("%s: then taken: %+v, %v", when, taking, err)
		}
	}
}

// The handle of a call finds the call until it is over, and replaces a handle from the client.
func TestHandle(t *testing.T) {
	shared := Compile(Options{Workspace: func(*sessionstate.Context) string { return "" }})
	defer shared.Close()
	calls := new(ToolCalls)
	var m wire.Message
	m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"f","_meta":{"`+CallKey+`":"mine"}}}`+"\n"))
	new(wire.Scanner).Look(&m)
	var call relayed.Call
	call.Reset(nil, true)
	call.SetValue(sessionstate.ContextKey{}, &sessionstate.Context{})
	shared.Connect(ConnOptions{ToolCalls: calls}).observe((*middleware.Call)(&call), &m)
	id := m.Get("params", "_meta", CallKey).Text()
	if id == "mine" || calls.Get(id) == nil {
		t.Errorf("the handle %q does not find the call", id)
	}
	for _, c := range []*ToolCall{nil, calls.Get(id)} {
		if _, _, err := c.Session(t.Context()); err != store.ErrNoContext {
			t.Errorf("the session of a call without one: %v", err)
		}
	}
	call.Hooks() // the call is over
	if calls.Get(id) != nil {
		t.Error("the handle finds the call after its end")
	}
}

// A client's id of the session is the one that it names in its calls. That of Codex is not known before.
func TestHostSession(t *testing.T) {
	given := sessionstate.Fact{Value: "given", Source: sessionstate.Operator}
	thread := sessionstate.Fact{Value: "thread", Source: sessionstate.RequestMeta}
	for _, test := range []struct {
		client string
		view   sessionstate.Context
		want   string
	}{
		{"codex-mcp-client", sessionstate.Context{Session: given}, ""},
		{"codex-mcp-client", sessionstate.Context{Session: given, Conversation: thread}, "thread"},
		{"codex-mcp-client", sessionstate.Context{Session: thread, Conversation: thread}, "thread"},
		{"claude-code", sessionstate.Context{Session: given}, "given"},
		{"unknown", sessionstate.Context{Session: given}, "given"},
		{"unknown", sessionstate.Context{Session: sessionstate.Fact{Value: "connection"}}, ""},
	} {
		if got := host(&test.view, test.client).Session; got != test.want {
			t.Errorf("%s, %s, %s: %q, want %q", test.client, test.view.Session, test.view.Conversation, got, test.want)
		}
	}
}

// The owner and the trust in the registry are those of the credential. They decide whom the session may write to.
func TestClaim(t *testing.T) {
	shared := Compile(Options{Token: "token", Workspace: func(*sessionstate.Context) string { return "w" }})
	defer shared.Close()
	ada := &sessionstate.Principal{User: "ada", Tenant: "acme", Trust: "direct"}
	for _, test := range []struct {
		view sessionstate.Context
		want store.Claim
	}{
		{sessionstate.Context{Principal: ada}, store.Claim{Tenant: "acme", Owner: "ada", Trust: "direct"}},
		{sessionstate.Context{}, store.Claim{}},
		{sessionstate.Context{Session: sessionstate.Fact{Source: sessionstate.RequestMeta}}, store.Claim{Conversation: true}},
		{sessionstate.Context{Session: sessionstate.Fact{Source: sessionstate.InitializeMeta}}, store.Claim{Conversation: true}},
		{sessionstate.Context{Session: sessionstate.Fact{Source: sessionstate.HostEnvironment}}, store.Claim{}},
	} {
		got := shared.claim("key", &test.view, "")
		test.want.Key, test.want.Token, test.want.Workspace, test.want.Title = "key", "token", "w", got.Title
		if got != test.want {
			t.Errorf("%+v, want %+v", got, test.want)
		}
	}
}
