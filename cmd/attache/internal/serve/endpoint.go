package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/cmd/attache/internal/session"
	"github.com/attache-mcp/attache/cmd/attache/internal/telemetry"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/front"
	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A Server is a server behind attache.
type Server struct {
	// Path is the path of its endpoint, such as /mcp.
	Path string
	// Command starts the server.
	Command []string
	// Settings are the settings of the server, and Load reads them again.
	Settings *config.Settings
	Load     func() (*config.Settings, error)

	state string // the session.FileState of Settings
}

// An endpoint is a server behind attache, with its compiled rules and its sessions.
type endpoint struct {
	Server
	s         *service
	log       *slog.Logger
	shared    *assembly.Shared // of the settings at the start; Connect and Authenticate use those in force
	front     *front.Front
	reloader  *session.Reloader
	telemetry *telemetry.Telemetry
	process   bool        // each session has a process
	traced    atomic.Bool // a request had a span

	notStarted rate.Sometimes // limits how often the log says at level error that the server could not be started
	// start starts the upstream of a session, also after a crash. env returns the environment for a process.
	start func(s front.Opening, env func() []string) (proxy.Upstream, error)
}

// newEndpoint compiles the rules of a server and makes its front. After an error nothing is left open.
func (s *service) newEndpoint(server Server) (*endpoint, error) {
	e := &endpoint{Server: server, s: s, log: s.Log, notStarted: rate.Sometimes{First: 20, Interval: time.Minute}}
	if len(s.Servers) > 1 {
		e.log = logging.ForServer(s.Log, server.Settings.Server.Name)
	}
	e.acceptResource(e.Settings)
	e.telemetry = telemetry.Start(s.Process, server.Settings.Server.Name, s.Version, e.log)
	var err error
	e.shared, err = assembly.Compile(assembly.Options{Process: s.Process, Database: s.database, UserTurns: true, Continues: true, Telemetry: e.telemetry.Recorder, Audit: true, Log: e.log}, server.Settings)
	if err != nil {
		e.telemetry.Close()
		return nil, err
	}
	if err := e.chooseStart(); err != nil {
		e.shared.Close()
		e.telemetry.Close()
		return nil, err
	}
	for _, w := range server.Settings.Warnings {
		e.log.Warn(w.String())
	}
	if names := server.Settings.RemoteVariables(); e.process && len(names) > 0 {
		e.log.Info("this server does not get the variables named in server.headers, bearer_env and oauth.client_secret; if it needs such a value, put it into another variable", "names", names)
	}
	if server.Settings.Session.ID != "" {
		e.log.Warn("session.id has no effect: each client of attache serve has a session of its own")
	}
	if server.Settings.Record != "" {
		s.Log.Warn("record has no effect under attache serve: record a client of it, with attache --record FILE -- URL", "server", server.Path)
	}
	if !server.Settings.Origin("serve.path").Default() && server.Path != server.Settings.Serve.Path {
		s.Log.Warn("serve.path has no effect: the path of an entry of servers is its name", "server", server.Path)
	}
	if server.Settings.Teams.Enabled {
		s.Log.Warn("teams.enabled has no effect under attache serve: its sessions start no others and carry no messages; leave it out, or run attache beside each client", "server", server.Path)
	}
	// Before the first reload, which must not change whether clients need a credential.
	o := e.frontOptions()
	e.warnOfCredentials()
	e.reloader = session.NewReloader(e.shared, e.loader(o.Authenticate != nil), server.state, e.log)
	e.reloader.Watch()
	e.front = front.New(o)
	return e, nil
}

// loader returns Server.Load. Whether clients need a credential is decided at the start, so if they
// do not, it warns once of keys that were created or an issuer that was named since.
func (e *endpoint) loader(authenticates bool) func() (*config.Settings, error) {
	var once sync.Once
	return func() (*config.Settings, error) {
		s, err := e.Load()
		if err != nil {
			return nil, err
		}
		e.acceptResource(s)
		named := s.Identity.AcceptsTokens() || s.Identity.KeysFile != "" && !s.IsDefaultKeysFile()
		if !authenticates && (named || e.shared.Authenticates()) {
			once.Do(func() {
				e.log.Warn("there are keys or tokens now, but clients need none until attache is started again", "path", e.Path)
			})
		}
		return s, nil
	}
}

// chooseStart sets e.start, and prepares the state that all upstreams share.
func (e *endpoint) chooseStart() error {
	if e.Settings.Server.Remote.URL == "" {
		e.process, e.start = true, e.startProcess
		env := slices.Clone(e.s.Process.Env) // with server.env, which may set PATH
		for name, value := range e.Settings.Server.Env {
			env = append(env, name+"="+value)
		}
		if _, err := child.Find(child.Options{Argv: e.Command, Env: env}); err != nil {
			e.log.Warn("the server cannot be started: clients get an error until it can", "path", e.Path, "err", err)
		}
		return nil
	}
	options := remoteserver.Options
	// Clients that are other people must not use the login of the user who runs attache.
	if e.shared.Authenticates() {
		options = remoteserver.SharedOptions
	}
	o, err := options(e.s.Process, e.Settings, e.log)
	e.start = func(s front.Opening, _ func() []string) (proxy.Upstream, error) {
		o := o // each session has its own Forward and Log
		o.Forward = func(id []byte) http.Header {
			if r := s.Request(id); r != nil {
				return r.Header
			}
			return nil
		}
		o.Log = e.logOf(s)
		server, err := remote.Start(o)
		if err != nil {
			return nil, err
		}
		return server, nil
	}
	return err
}

func (e *endpoint) close() {
	e.reloader.Close()
	e.shared.Close()
	e.telemetry.Close()
}

// frontOptions returns the options of the front. Whether clients need a credential is decided here, once: a
// reload does not change it. If that depends on a database that does not answer yet, its first answer decides.
func (e *endpoint) frontOptions() front.Options {
	o := front.Options{
		Open:         e.open,
		Conversation: e.conversation,
		Origins:      e.s.settings.Origins,
		Hosts:        e.s.hosts(),
		Limits:       e.s.limits,
		Idle:         e.s.settings.Idle,
		Store:        e.s.sessionStore(&e.Server),
		Log:          e.log,
	}
	needs, unsure := e.shared.NeedsCredential()
	if unsure && e.s.reachable() == "" {
		o.AuthenticateRequest = e.authenticateUnsure()
	}
	if needs {
		o.Authenticate = e.authenticate
		o.Reauthenticate = e.Settings.Identity.Cache * 9 / 10 // the result may be a tenth old already
		o.Scope = strings.Join(e.s.scopes(), " ")
		if e.Settings.Identity.AcceptsTokens() && e.s.settings.PublicURL != "" {
			o.Metadata = e.s.metadataURL(e).String()
		}
	}
	return o
}

func (e *endpoint) logOf(s front.Opening) *slog.Logger {
	log := e.log.With("client", s.Label) // layers use "session" for their sessions
	if owner, _ := s.Who.Value.(*sessionstate.Principal); owner != nil && owner.User != "" {
		log = log.With("user", owner.User)
	}
	return log
}

// open makes the relay of a session. The front calls it when a session begins or is continued. From
// children.begin on nothing may fail, because only Closed calls children.end.
func (e *endpoint) open(s front.Opening) (front.Relay, error) {
	// It also stands for the session among children.
	control := &proxy.Control{}
	if e.process && !e.s.children.begin(control) {
		return front.Relay{}, fmt.Errorf("%w: as many processes run as serve.limits.children allows", front.ErrBusy)
	}
	e.s.reports.Changed()
	// A token may be renewed during the session. The layers ask for the one of the last request.
	var last atomic.Pointer[lastCredential]
	seen := func(who front.Principal, credential string) {
		owner, _ := who.Value.(*sessionstate.Principal)
		last.Store(&lastCredential{credential, owner})
	}
	seen(s.Who, s.Credential)
	latest := func() (string, *sessionstate.Principal) {
		l := last.Load()
		return l.text, l.owner
	}
	log := e.logOf(s)
	conn := e.shared.Connect(assembly.ConnOptions{
		Control: control,
		Log:     log,
		Client:  &assembly.Client{Namespace: namespace(s.Who), Session: s.Session, Latest: latest, Span: e.spanOf(s.Request)},
	})
	o := conn.Relay()
	env := sync.OnceValue(func() func() []string { return conn.FixedEnvironment(e.s.Process.Env) }) // the same at every start
	o.Start = func(context.Context) (proxy.Upstream, error) { return e.start(s, func() []string { return env()() }) }
	o.Restart = conn.Restart()
	if o.Restart != nil {
		o.Restart.Resumed = s.Resumed // its server is a new one, which the model has to know
	}
	return front.Relay{
		Options: o,
		Seen:    seen,
		Closed: func() {
			conn.Close()
			e.s.reports.Changed()
			if e.process {
				e.s.children.end(control)
			}
		},
	}, nil
}

// A lastCredential is the last credential of a session, and its owner.
type lastCredential struct {
	text  string
	owner *sessionstate.Principal
}

// namespace returns the prefix that separates the session keys of a principal from those of
// others: clients choose the keys.
func namespace(who front.Principal) string {
	if who.ID == "" {
		return ""
	}
	return digest(who.ID)[:12] + "/"
}

// startProcess starts the process of a session with the facts of the session in its environment.
func (e *endpoint) startProcess(s front.Opening, env func() []string) (proxy.Upstream, error) {
	p, err := child.Start(context.Background(), child.Options{
		Argv: e.Command, Env: env(), Stderr: e.stderr(), Hide: logging.Hide(e.log), Forker: e.s.forker,
	})
	if err != nil {
		level := slog.LevelDebug // clients try again without end
		e.notStarted.Do(func() { level = slog.LevelError })
		e.logOf(s).Log(context.Background(), level, "the server could not be started", "err", err)
		return nil, err
	}
	e.logOf(s).Debug("server started", "command", p.Path(), "pid", p.Pid())
	return p.Upstream(), nil
}

// stderr returns a writer for the stderr of a new process. If there are several servers, it writes the
// name of the server before each line.
func (e *endpoint) stderr() io.Writer {
	name := ""
	if len(e.s.Servers) > 1 {
		name = e.Settings.Server.Name + ": "
	}
	return logging.NewStderr(e.s.Process.Stderr).Beside(name)
}

// conversation returns the key of the session that a request of 2026-07-28 belongs to, so that requests with
// different facts have different sessions. It is the key of the conversation or, if the request has
// none, the workspace. The prefixes keep a conversation from having the key of a workspace.
func (e *endpoint) conversation(m *wire.Message) string {
	meta := m.Get("params", "_meta")
	if key := firstText(meta, e.Settings.Session.Meta.Conversation); key != "" {
		return "conversation " + key
	}
	if path := firstText(meta, e.Settings.Session.Meta.Workspace); path != "" {
		return "workspace " + path
	}
	return ""
}

func firstText(meta wire.Value, paths [][]string) string {
	for _, path := range paths {
		if text := meta.Get(path...).Text(); text != "" {
			return text
		}
	}
	return ""
}

// children holds the sessions that have a process.
type children struct {
	// max is serve.limits.children.
	max int

	mu  sync.Mutex
	all map[*proxy.Control]bool
}

// begin adds a session, and reports false if as many have a process as may.
func (c *children) begin(session *proxy.Control) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) >= c.max {
		return false
	}
	c.all[session] = true
	return true
}

func (c *children) end(session *proxy.Control) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, session)
}

func (c *children) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// restart restarts the processes of all sessions whose settings allow it, and returns how many
// there are.
func (c *children) restart() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Restart does not wait for the new process, so mu is held only for a moment.
	for session := range c.all {
		if session.Restart() {
			n++
		}
	}
	return n
}
