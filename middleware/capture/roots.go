package capture

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// rootsAsk is the state of the request for the client's roots. Conn.mu guards it.
type rootsAsk struct {
	allowed bool
	moves   bool              // the client's roots change without a report
	shared  bool              // the client's roots may be those of another project
	ready   chan struct{}     // closed when the client has answered or is late; nil if it was not asked
	late    int               // how often in a row the client did not answer in time
	again   time.Time         // when the client may be asked again; zero if it may not
	root    sessionstate.Fact // the workspace that the client's roots name, in all of its conversations
	agreed  bool              // a root was the directory of the host's variable, so both use the same paths
}

// worktrees is the directory in a project in which Claude Code makes worktrees.
const worktrees = ".claude/worktrees"

// RootsTimeout is how long a call waits for the client's roots.
const RootsTimeout = time.Second

// maxLate is how many calls in a row wait in vain for the client's roots. It is more than one, because a
// busy client may answer later, and small, because some clients never answer.
const maxLate = 3

// latePause is how long a client that was late is not asked again, so that calls that were sent together
// wait only once.
const latePause = time.Second

// CanAskWorkspace reports whether a call may get another workspace from the client's roots. If so,
// AskWorkspace returns a channel.
func (c *Conn) CanAskWorkspace(call *middleware.Call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.canAskLocked(call)
}

// A refreshedKey is the key under which Refresh attaches true to a call.
type refreshedKey struct{}

// canAskLocked reports whether the client may be asked for its roots on behalf of a call: only once, and
// never in the modern era, in which a server sends no requests. A call that has a workspace needs no
// roots, unless it is the git root, or they may have changed without a report.
func (c *Conn) canAskLocked(call *middleware.Call) bool {
	view := sessionstate.ContextOf(call)
	return view != nil && !view.Modern && c.ask.allowed && call.Value(refreshedKey{}) == nil &&
		(view.Workspace.Source < sessionstate.Roots || c.ask.moves && view.Workspace.Source <= sessionstate.HostEnvironment)
}

// AskWorkspace asks a legacy client for its roots, for a call that reads the workspace. A client that has
// answered is asked again only if it is known to change its roots without a report. A client that was late
// is asked again later, but not if it was late too often. If ok is false, the client cannot be asked. If ok
// is true, wait until ready is closed and then call [Conn.Refresh].
//
// It must be called while the call is in flight (SEP-2260).
func (c *Conn) AskWorkspace(call *middleware.Call) (ready <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.canAskLocked(call) {
		return nil, false
	}
	if c.ask.ready != nil && (c.ask.again.IsZero() || time.Now().Before(c.ask.again)) {
		return c.ask.ready, true
	}
	done, moves := make(chan struct{}), c.ask.moves
	c.ask.ready, c.ask.again = done, time.Time{}
	call.Ask(wire.Client, "roots/list", nil, RootsTimeout, func(reply *wire.Message) {
		if reply == nil {
			c.rootsLate(done)
		} else {
			c.storeRoots(reply, moves)
		}
		close(done)
	})
	return done, true
}

// AskingLayer returns the layer for rules that read the workspace of every call. If [Conn.CanAskWorkspace]
// is true for a call, the call waits until the client has been asked for its roots.
func (c *Conn) AskingLayer() middleware.Layer {
	l := c.Layer()
	l.Wrap = func(next middleware.Handler) middleware.Handler { return c.wrap(c.askFirst(next)) }
	return l
}

func (c *Conn) askFirst(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		call := middleware.CallFrom(ctx)
		if m.From != wire.Client || m.Kind() != wire.Request || !m.MethodIs("tools/call") {
			return next(ctx, m)
		}
		ready, ok := c.AskWorkspace(call)
		if !ok {
			return next(ctx, m)
		}
		refreshed := func(ctx context.Context, m *wire.Message) error {
			c.Refresh(middleware.CallFrom(ctx))
			return next(ctx, m)
		}
		select {
		case <-ready:
			return refreshed(ctx, m)
		default:
			call.Suspend(m, ready, 2*RootsTimeout, refreshed)
			return nil
		}
	}
}

// rootsLate records that the client did not answer a request in time, and lets a later call ask again.
// asked is the channel of the request.
func (c *Conn) rootsLate(asked chan struct{}) {
	c.conn.Log.Debug("the client did not answer roots/list")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ask.late++; c.ask.late < maxLate && c.ask.ready == asked {
		c.ask.again = time.Now().Add(latePause)
	}
}

// storeRoots stores the client's root, for the sessions that have no workspace. If there are several
// roots, such as the folders of an editor, it is unknown in which one the model works, so the workspace
// stays unknown: a wrong value is worse than none. Roots inside the first are part of it. If the client
// moves, the model works in the first root. If it has one root for several projects, that counts only if it
// is the directory in which the client started this process.
func (c *Conn) storeRoots(reply *wire.Message, moves bool) {
	first, several := "", false
	for root := range reply.Get("result", "roots").Elements() {
		path := filePath(root.Get("uri").Text())
		switch {
		case path == "" || !c.usable(context.Background(), path, "roots/list"):
		case first == "":
			first = path
		default:
			several = several || !isInside(path, first)
		}
		if moves {
			break // the others are directories that the user has added
		}
	}
	if several {
		c.conn.Log.Info("the client has several roots, so none is taken as the workspace; name the workspace with --workspace")
		first = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first != "" && c.ask.shared && !sameDirectory(first, c.conn.Directory) {
		c.conn.Log.Info("the client's root may be that of another project, so it is not taken as the workspace; see Qwen Code in docs/clients.md")
		first = ""
	}
	c.ask.late = 0
	if moves && reply.Get("result").Exists() {
		c.ask.again = time.Now()
	}
	if c.ask.root = (sessionstate.Fact{}); first != "" {
		root := (*sessionstate.Context)(nil).WithWorkspace(sessionstate.Fact{Value: first, Source: sessionstate.Roots, From: "roots/list"})
		c.ask.root = root.Workspace
	}
	c.ask.agreed = c.ask.agreed || c.ask.root.Value == c.conn.Base.Workspace.Value
}

func sameDirectory(a, b string) bool {
	inA, errA := os.Stat(a)
	inB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(inA, inB)
}

// useRoot makes root the workspace of a session that has no better one, in place of an earlier root.
// initial is the context of a new session.
func useRoot(s *sessionstate.Session, initial *sessionstate.Context, root sessionstate.Fact) {
	known := s.Context().Workspace
	if known == root || known.Source > sessionstate.Roots || known.Source < sessionstate.Roots && root.Empty() {
		return
	}
	s.Update(func(old *sessionstate.Context) *sessionstate.Context {
		if old.Workspace != known {
			return old
		}
		return old.With(func(ctx *sessionstate.Context) { ctx.Workspace = sessionstate.Better(initial.Workspace, root) })
	})
}

// isInside reports whether a path is the directory or in it. It compares the paths as text and does
// not follow links.
func isInside(path, dir string) bool {
	if hasDrive(path) { // filepath knows backslashes on Windows only
		path, dir = strings.ReplaceAll(path, `\`, "/"), strings.ReplaceAll(dir, `\`, "/")
	}
	inside, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(inside)
}

// Refresh attaches the session's current workspace to a call that has waited for it, and returns the
// context. If the workspace comes from the host's variable and the client has moved to another directory,
// the context has both. attache uses the other directory only if it is a worktree of the client in the
// workspace, or if an earlier root was the workspace itself. Otherwise a person may have set the variable,
// as for a container, and its paths may not be those of the client.
func (c *Conn) Refresh(call *middleware.Call) *sessionstate.Context {
	view := sessionstate.ContextOf(call)
	if view == nil || view.Workspace.Source > sessionstate.HostEnvironment {
		return view
	}
	s := c.conn.Sessions.Get(view.Session.Value)
	c.mu.Lock()
	initial, root, agreed := c.initial, c.ask.root, c.ask.agreed
	c.mu.Unlock()
	useRoot(s, initial, root)
	known := s.Context().Workspace
	view = view.With(func(ctx *sessionstate.Context) {
		ctx.Workspace = known
		if known.Source == sessionstate.HostEnvironment && root.Value != known.Value &&
			(agreed && !root.Empty() || isInside(root.Value, filepath.Join(known.Value, worktrees))) {
			ctx.Moved = root
		}
	})
	call.SetValue(sessionstate.ContextKey{}, view)
	call.SetValue(refreshedKey{}, true)
	return view
}

// forgetRoots allows another request for the roots, because they have changed.
func (c *Conn) forgetRoots() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ask.ready, c.ask.root = nil, sessionstate.Fact{}
}

// filePath returns the path of a file URI, or "" for other URIs: a root must be a file URI
// (specification, client/roots). A path with a drive is a Windows path on every system, because the client
// of a front may run on another machine. Claude Code 2.1.112 does not encode such a path: file://C:\src.
func filePath(uri string) string {
	if bare, ok := strings.CutPrefix(uri, "file://"); ok && hasDrive(bare) {
		return drivePath(bare)
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return ""
	}
	if runtime.GOOS == "windows" || hasDrive(strings.TrimPrefix(u.Path, "/")) {
		return drivePath(u.Path)
	}
	return u.Path
}

// hasDrive reports whether a path begins with a drive of Windows.
func hasDrive(p string) bool {
	return len(p) > 2 && 'a' <= p[0]|0x20 && p[0]|0x20 <= 'z' && p[1] == ':' && (p[2] == '/' || p[2] == '\\')
}

// drivePath returns the Windows path of the path in a URI, such as /C:/src.
func drivePath(p string) string {
	if len(p) > 2 && p[0] == '/' && p[2] == ':' {
		p = p[1:]
	}
	return strings.ReplaceAll(p, "/", `\`)
}
