package capture_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// TestFacts plays testdata/facts/*.txt. In a script
//
//	layers facts=WORD,WORD...
//
// configures the layer, which adds a note for each frame with its session, its workspace, the
// source of the workspace, and the revision. The words are
//
//	operator   the operator sets the session and the workspace
//	host       the host's variables set them
//	git        the git root of the working directory is known
//	codex      the git root that Codex names counts
//	tenant     the connection has a namespace
//	here       the client started this process in /
//	asking     tools/call waits for the roots, if the client may be asked
//	inner      a variable of the host names another session for a client called "inner"
//	roots      a client may be asked for its roots, and each ping waits for them
//	explain    facts that are not used add a note, too
func TestFacts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are not Windows paths")
	}
	proxytest.Player{
		Options: proxy.Options{IDPrefix: "own-"},
		Named:   map[string]func(*proxytest.Session, string) middleware.Layer{"facts": factsLayer},
	}.Play(t, "testdata/facts/*.txt")
}

func factsLayer(s *proxytest.Session, arg string) middleware.Layer {
	words := "," + arg + ","
	has := func(word string) bool { return strings.Contains(words, ","+word+",") }
	base := &sessionstate.Context{}
	for word, source := range map[string]sessionstate.Source{"operator": sessionstate.Operator, "host": sessionstate.HostEnvironment, "git": sessionstate.GitRoot} {
		if has(word) {
			base = base.WithSession(sessionstate.Fact{Value: word, Source: source, From: "the " + word}).
				WithWorkspace(sessionstate.Fact{Value: "/" + word, Source: source, From: "the " + word})
		}
	}
	shared, err := capture.Compile(capture.Options{Roots: has("roots"), GitRoot: has("codex")})
	if err != nil {
		panic(err) // a mistake in the script
	}
	o := capture.ConnOptions{Base: base, Name: "conn", Log: logNotes(s)}
	if has("tenant") {
		o.Namespace = "tenant "
	}
	if has("here") {
		o.Directory = "/"
	}
	if has("inner") {
		o.HostSession = func(client string) sessionstate.Fact {
			if client != "inner" {
				return base.Session
			}
			return sessionstate.Fact{Value: "inner", Source: sessionstate.HostEnvironment, From: "its host"}
		}
	}
	c := shared.Connect(o)
	note := func(view *sessionstate.Context) {
		if c.Current() != view && !has("roots") {
			s.Note("Current returns another context")
		}
		moved := ""
		if !view.Moved.Empty() {
			moved = ", moved to " + view.Moved.Value
		}
		if talk := view.Conversation.Value; talk != "" && talk != view.Session.Value {
			moved += ", conversation " + talk
		}
		s.Note("session %s, workspace %s (%s)%s, %s modern=%v", view.Session.Value, view.Workspace.Value, view.Workspace.From, moved, view.Protocol, view.Modern)
	}
	wrap := func(next middleware.Handler) middleware.Handler {
		layer := c.Layer()
		if has("asking") {
			layer = c.AskingLayer()
		}
		inner := layer.Wrap(func(ctx context.Context, m *wire.Message) error {
			if m.From != wire.Client || m.Kind().IsReply() {
				return next(ctx, m)
			}
			call := middleware.CallFrom(ctx)
			if has("roots") && m.MethodIs("ping") && c.CanAskWorkspace(call) {
				ready, _ := c.AskWorkspace(call)
				call.Suspend(m, ready, 2*capture.RootsTimeout, func(ctx context.Context, m *wire.Message) error {
					note(c.Refresh(middleware.CallFrom(ctx)))
					return next(ctx, m)
				})
				return nil
			}
			if has("asking") && m.MethodIs("tools/call") && c.CanAskWorkspace(call) {
				s.Note("the client may be asked again")
			}
			note(call.Value(sessionstate.ContextKey{}).(*sessionstate.Context))
			return next(ctx, m)
		})
		return func(ctx context.Context, m *wire.Message) error {
			if has("explain") {
				middleware.CallFrom(ctx).Listen(true, func(_ *middleware.Call, n middleware.Note) { s.Note("%s %s: %s", n.Act, n.Rule, n.Why) })
			}
			return inner(ctx, m)
		}
	}
	return middleware.Layer{Name: "capture", Wrap: wrap}
}

func TestCompileRefuses(t *testing.T) {
	for _, o := range []capture.Options{{WorkspaceKeys: [][]string{{}}}, {ConversationKeys: [][]string{{"a"}, {}}}, {Accept: []string{"apiKey"}}} {
		if s, err := capture.Compile(o); s != nil || err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}

// A waitingRelay waits in Suspend and then resumes.
type waitingRelay struct{ relayed.Relay }

func (w waitingRelay) Suspend(m *wire.Message, ready <-chan struct{}, _ time.Duration, resume relayed.Handler) {
	<-ready
	call := relayed.Call{}
	call.Reset(w, true)
	_ = resume(&relayed.Context{Context: context.Background(), Call: &call}, m)
}

// The memory for conversations and credentials is bounded, however many a client sends and
// however long they are.
func TestBounds(t *testing.T) {
	shared, err := capture.Compile(capture.Options{
		Accept: capture.CredentialKeys(),
		Identify: func(_ context.Context, c capture.Credential) (*sessionstate.Principal, error) {
			return &sessionstate.Principal{User: c.Text[:8], Roles: []string{strings.Clone(c.Text)}}, nil
		},
	})
	testkit.Check(t, err)
	c := shared.Connect(capture.ConnOptions{})
	passed := 0
	handler := c.Layer().Wrap(func(ctx context.Context, _ *wire.Message) error { passed++; return nil })
	call := relayed.Call{}
	var scanner wire.Scanner
	before := testkit.Heap()
	padding := strings.Repeat("x", 31<<10)
	for i := range 3000 {
		call.Reset(waitingRelay{}, true)
		m := wire.Message{}
		m.Reset(wire.Client, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"threadId":"%d","io.github.attache-mcp/token":"%08d%s"}}}`+"\n", i, i, padding))
		scanner.Look(&m)
		testkit.Check(t, handler(&relayed.Context{Context: t.Context(), Call: &call}, &m))
	}
	if grown := testkit.Heap() - before; grown > 24<<20 || passed != 3000 {
		t.Errorf("%d conversations with tokens of 32 KB use %d MiB", passed, grown>>20)
	}
	runtime.KeepAlive(c)
}

// After Recheck the principal is looked up again, and Changed is called if it differs.
func TestRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := "ada"
		changed := 0
		shared, err := capture.Compile(capture.Options{
			Identify: func(context.Context, capture.Credential) (*sessionstate.Principal, error) {
				return &sessionstate.Principal{User: user}, nil
			},
		})
		testkit.Check(t, err)
		c := shared.Connect(capture.ConnOptions{Changed: func() { changed++ }})
		if got := ping(t, c); got != "ada" {
			t.Errorf("before Recheck: %s", got)
		}
		user = "bob"
		if got := ping(t, c); got != "ada" || changed != 0 {
			t.Errorf("while the principal is valid: %s, changed %d times", got, changed)
		}
		c.Recheck()
		synctest.Wait()
		if got := ping(t, c); got != "bob" || changed != 1 {
			t.Errorf("after Recheck: %s, changed %d times", got, changed)
		}
	})
}

// Changed is called for a new owner, but not while the messages of two owners alternate. It is called
// when one of them has been the only owner for a minute.
func TestAlternatingOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user := ""
		changed := 0
		shared, err := capture.Compile(capture.Options{})
		testkit.Check(t, err)
		c := shared.Connect(capture.ConnOptions{
			Identify: func(context.Context, capture.Credential) (*sessionstate.Principal, error) { return nil, nil },
			Known: func(*wire.Message) (*sessionstate.Principal, error, bool) {
				return &sessionstate.Principal{User: user}, nil, true
			},
			Changed: func() { changed++ },
		})
		for i, step := range []struct {
			user    string
			wait    time.Duration
			changed int
		}{
			{"ada", 0, 0},
			{"ada", time.Hour, 0},
			{"bob", 0, 1},
			{"ada", 30 * time.Second, 1},
			{"bob", 30 * time.Second, 1},
			{"eve", 0, 2},
			{"ada", 59 * time.Second, 2},
			{"bob", time.Minute, 3},
			{"ada", 0, 3},
			{"ada", 59 * time.Second, 3},
			{"ada", time.Second, 4},
			{"ada", time.Hour, 4},
		} {
			time.Sleep(step.wait)
			user = step.user
			if got := ping(t, c); got != user || changed != step.changed {
				t.Errorf("step %d: got %s, want %s, changed %d times", i, got, user, changed)
			}
		}
	})
}

// Changed is called when the owner can no longer be determined, and when it can again, also if another
// owner applies meanwhile.
func TestOwnerFailsForAWhile(t *testing.T) {
	for _, during := range []*sessionstate.Principal{nil, {User: "ada"}} {
		synctest.Test(t, func(t *testing.T) { testOwnerFails(t, during) })
	}
}

func testOwnerFails(t *testing.T, during *sessionstate.Principal) {
	var failure error
	changed := 0
	shared, err := capture.Compile(capture.Options{})
	testkit.Check(t, err)
	c := shared.Connect(capture.ConnOptions{
		Identify: func(context.Context, capture.Credential) (*sessionstate.Principal, error) { return nil, nil },
		Known: func(*wire.Message) (*sessionstate.Principal, error, bool) {
			if failure != nil {
				return during, failure, true
			}
			return &sessionstate.Principal{User: "ada"}, nil, true
		},
		Changed: func() { changed++ },
	})
	for i, now := range []error{nil, errors.New("no file"), nil} {
		failure = now
		ping(t, c)
		if changed != i {
			t.Errorf("after message %d with the error %v: changed %d times", i, failure, changed)
		}
	}
}

// A source that changes during a look-up is asked again: the result may be that of before.
func TestRecheckDuringLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		users := []string{"ada", "bob", "eve"}
		shared, err := capture.Compile(capture.Options{
			Identify: func(context.Context, capture.Credential) (*sessionstate.Principal, error) {
				user := users[0]
				users = users[1:]
				time.Sleep(time.Second)
				return &sessionstate.Principal{User: user}, nil
			},
		})
		testkit.Check(t, err)
		c := shared.Connect(capture.ConnOptions{})
		time.AfterFunc(time.Second/2, c.Recheck)
		if first, second := ping(t, c), ping(t, c); first != "ada" || second != "bob" {
			t.Errorf("got %s, then %s", first, second)
		}
	})
}

// A relay that cannot suspend a message resumes it immediately.
type impatientRelay struct{ waitingRelay }

func (r impatientRelay) Suspend(m *wire.Message, _ <-chan struct{}, _ time.Duration, resume relayed.Handler) {
	done := make(chan struct{})
	close(done)
	r.waitingRelay.Suspend(m, done, 0, resume)
}

// Changed is called when a look-up ends for which a message has not waited: its client may have listed
// the tools of nobody.
func TestChangedAfterLateLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changed atomic.Int64
		shared, err := capture.Compile(capture.Options{
			Identify: func(context.Context, capture.Credential) (*sessionstate.Principal, error) {
				time.Sleep(time.Second)
				return &sessionstate.Principal{User: "ada"}, nil
			},
		})
		testkit.Check(t, err)
		c := shared.Connect(capture.ConnOptions{Changed: func() { changed.Add(1) }})
		if got := pingThrough(t, c, impatientRelay{}); got != "" || changed.Load() != 0 {
			t.Errorf("during the look-up: %q, changed %d times", got, changed.Load())
		}
		time.Sleep(time.Second)
		if synctest.Wait(); changed.Load() != 1 {
			t.Errorf("after the look-up: changed %d times", changed.Load())
		}
	})
}

// Connections without a name have sessions of their own, also in one table.
func TestNamelessConnections(t *testing.T) {
	shared, err := capture.Compile(capture.Options{})
	testkit.Check(t, err)
	o := capture.ConnOptions{Sessions: sessionstate.NewSessions(sessionstate.SessionsOptions{})}
	synctest.Test(t, func(t *testing.T) {
		seen := map[string]bool{}
		for range 3 {
			c := shared.Connect(o)
			ping(t, c)
			seen[c.Current().Session.Value] = true
		}
		if len(seen) != 3 || seen[""] {
			t.Errorf("the sessions of three connections are %v", seen)
		}
	})
}

// ping sends a message through the layer of c and returns the user that it is from, "" if that is not known.
func ping(t *testing.T, c *capture.Conn) string { return pingThrough(t, c, waitingRelay{}) }

func pingThrough(t *testing.T, c *capture.Conn, relay relayed.Relay) string {
	call := relayed.Call{}
	call.Reset(relay, true)
	m, scanner := wire.Message{}, wire.Scanner{}
	m.Reset(wire.Client, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"))
	scanner.Look(&m)
	err := c.Layer().Wrap(func(context.Context, *wire.Message) error { return nil })(&relayed.Context{Context: t.Context(), Call: &call}, &m)
	testkit.Check(t, err)
	synctest.Wait()
	if p := c.Current().Principal; p != nil {
		return p.User
	}
	return ""
}
