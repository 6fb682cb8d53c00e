// Package session runs one relay between the client on stdin and a server: start,
// signals, recording, and reload when the configuration changes.
package session

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/status"
	"github.com/attache-mcp/attache/cmd/attache/internal/telemetry"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/cmd/attache/internal/wake"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
)

// Run relays one session between the client on stdin and stdout and the server that command
// starts. It returns the server's exit status. load reads the settings again.
func Run(ctx context.Context, p cli.Process, s *config.Settings, load func() (*config.Settings, error), version string, command []string, log *slog.Logger) int {
	w := &relay{p: p, s: s, command: command, log: log, cancel: func() {}}
	return w.begin(ctx, load, version, &assembly.TeamsOptions{Waker: wake.For(p, s)})
}

// begin assembles the layers and runs the session.
func (w *relay) begin(ctx context.Context, load func() (*config.Settings, error), version string, teams *assembly.TeamsOptions) int {
	p, s, state := w.p, w.s, FileState(w.s)
	w.reports = status.NewRecorder(os.Getpid(), s.Server.Name, w.describe)
	logging.Tee(w.log, w.reports.Log)
	t := telemetry.Start(p, s.Server.Name, version, w.log)
	defer t.Close()
	conn := assembly.ConnOptions{Control: &w.control, Status: w.reports}
	if s.Record != "" {
		conn.IDPrefix = proxy.RandomIDPrefix()
	}
	// One connection, while it is used: thousands of attaches may share the database.
	db, err := assembly.OpenDatabase(p, s, 1, w.log)
	var shared *assembly.Shared
	if err == nil {
		shared, err = assembly.Compile(assembly.Options{Process: p, Database: db, Telemetry: t.Recorder(), Audit: true, UserTurns: true, Teams: teams, Log: w.log}, s)
	}
	if err != nil {
		w.log.Error(err.Error())
		return cli.ExitUsage
	}
	w.conn = shared.Connect(conn)
	w.reloader = NewReloader(shared, load, state, w.log)
	warnSettings(s, w.log)
	if s.Teams.Enabled && s.DryRun {
		w.log.Warn("dry run: teams.enabled has no effect: the session is not registered and carries no messages")
	}
	assembly.WarnWorkspace(s, w.log)
	return w.run(ctx)
}

// warnSettings logs settings that are valid but probably a mistake.
func warnSettings(s *config.Settings, log *slog.Logger) {
	for _, w := range s.Warnings {
		log.Warn(w.String())
	}
}

// A relay is one run of attache in front of a server.
type relay struct {
	p       cli.Process
	s       *config.Settings
	command []string
	builtin func() *mempipe.Server // nil for a server that command names
	log     *slog.Logger
	conn    *assembly.Conn
	cancel  context.CancelFunc

	heeding  <-chan struct{} // closed when signals are heeded
	control  proxy.Control
	reloader *Reloader
	reports  *status.Recorder
	restarts bool // the server is a process, and started again when it ends

	mu       sync.Mutex
	server   server
	env      []string  // of every start of the server
	before   server    // the one that was in use, while another is started again
	signaled os.Signal // what ended us before the server was started
	ending   bool      // a signal ends us
	withdraw func()    // removes the report of the status; nil before the server is started
}

// headroom is how many bytes are reserved and never touched in front of a remote server, so that
// they cost no memory. Requests over HTTP make garbage, which is collected when a heap has grown by
// a part: with the small one of a session that was every few hundred requests. growth is that part,
// in percent: with Go's 100 the memory of a frame of 1 GiB would double.
const (
	headroom = 10 << 20
	growth   = 50
)

func (w *relay) run(ctx context.Context) int {
	ctx, w.cancel = context.WithCancel(ctx)
	defer w.cancel()
	defer w.heedSignals()()
	defer w.unwatch()
	defer w.closeLayers()
	if config.IsURL(w.command) {
		defer runtime.KeepAlive(make([]byte, headroom))
		defer debug.SetGCPercent(debug.SetGCPercent(growth))
	}
	o := w.conn.Relay()
	o.ClientIn, o.ClientOut, o.Start = w.p.Stdin, w.p.Stdout, w.start
	if o.Restart = w.conn.Restart(); o.Restart != nil {
		w.restarts = !config.IsURL(w.command)
		record := o.Restart.Restarted
		o.Restart.Wanted = w.goesOn
		o.Restart.Restarted = func(exit string, lost int, down time.Duration) {
			record(exit, lost, down)
			w.ready()
		}
	}
	if in, ok := w.p.Stdin.(*os.File); ok {
		w.greet(in)
		o.ClientGone = hungUp(in) // before pollable: asking a file for its descriptor makes it blocking
		file, restore := pollable(in)
		defer restore()
		o.ClientIn = file
	}
	if out, ok := w.p.Stdout.(*os.File); ok {
		o.ClientReads = reads(out)
		file, restore := pollable(out)
		defer restore()
		o.ClientOut = file
	}
	if w.s.Record != "" {
		r, err := startRecording(w.p, w.s, w.conn.IDPrefix, w.conn.Shared().Secrets(), w.log)
		if err != nil {
			w.log.Error(err.Error())
			return cli.ExitUsage
		}
		defer r.end()
		o.Watch = r.watch
	}
	return w.status(proxy.Run(ctx, o))
}

// closeLayers closes the connection and what the process keeps for it.
func (w *relay) closeLayers() {
	w.conn.Close()
	w.conn.Shared().Close()
}

// greet tells a person who started attache by hand that it waits for a client.
func (w *relay) greet(in *os.File) {
	if info, err := in.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 || !term.IsTerminal(in) {
		return
	}
	w.log.Info("waiting for an MCP client on stdin; put this command into a client's configuration, or try `attache demo`")
}

// status turns the end of the session into attache's exit status.
func (w *relay) status(err error) int {
	w.mu.Lock()
	server, sig := w.server, w.signaled
	if w.before != nil {
		server = w.before
	}
	w.mu.Unlock()
	switch {
	case errors.Is(err, context.Canceled): // also of a start that a signal forestalled
	case errors.Is(err, proxy.ErrStart):
		w.log.Error(err.Error())
		return cli.ExitNotStarted
	case errors.Is(err, proxy.ErrClientGone):
		w.log.Warn(err.Error())
	case err != nil:
		w.log.Error("the session ended early: the client could not be read or written", "err", err)
	}
	if server != nil {
		return server.status()
	}
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	// Nothing was ever said to the server. That is no fault, but a person who
	// tries a command by hand wants to know that it is not there.
	if err := w.findServer(); err != nil {
		w.log.Error(err.Error())
		return cli.ExitNotStarted
	}
	return 0
}

// start starts the server. The facts of the session are in its environment.
func (w *relay) start(context.Context) (proxy.Upstream, error) {
	<-w.heeding
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.signaled != nil || w.ending {
		return nil, context.Canceled
	}
	if w.server != nil {
		return w.startAgain()
	}
	if w.conn.Settings().DryRun && !config.IsURL(w.command) {
		w.log.Info("dry run: would give the server the session's context in its environment", "variables", strings.Join(w.conn.Injected(w.p.Env), " "))
	}
	server, err := w.startServer()
	if err != nil {
		return nil, err
	}
	w.server = server
	if dir := status.Dir(w.p); dir != "" {
		w.withdraw = w.reports.Publish(dir)
	}
	// A client may have started attache only to probe it, so the files are watched only now; that
	// takes its time, for which no message is to wait.
	go w.reloader.Watch()
	return server.upstream(), nil
}

// startAgain starts the server with the environment of its first start. The caller holds
// w.mu.
func (w *relay) startAgain() (proxy.Upstream, error) {
	server, err := w.startServer()
	if err != nil {
		return nil, err
	}
	if w.before == nil {
		w.before = w.server
	}
	w.server = server
	return server.upstream(), nil
}

// goesOn reports whether a server that ends is started again.
func (w *relay) goesOn() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ending
}

// endWith ends the session when the server is gone. The server may have ended before, and wait
// to be started again.
func (w *relay) endWith(s server) {
	s.status()
	w.cancel()
}

// ready is called when a server has started again: attache then exits with that server's status.
func (w *relay) ready() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = nil
}

// describe adds the facts of the session to a report.
func (w *relay) describe(r *status.Report) {
	if known := w.conn.Context(); known != nil {
		r.Session, r.Workspace = known.Session.Value, known.Workspace.Value
	}
	r.Restart = w.restarts && CanRestart()
}

// unwatch stops watching files, and removes the status file of this process.
func (w *relay) unwatch() {
	w.mu.Lock()
	withdraw := w.withdraw
	w.mu.Unlock()
	if withdraw != nil {
		withdraw()
	}
	w.reloader.Close()
}

// heedSignals forwards signals to the server until the function that it returns is called. It
// also takes SIGPIPE: a client that is gone shows as a write error, and the server still has to
// be stopped in order. SIGPIPE is not ignored, because children inherit ignored signals.
//
// The runtime takes on each signal in a thread of its own and waits for it, some 200 µs in all.
// So this runs beside the first frame, and the server waits for it: before the first frame a
// signal may end attache as it ends any program.
func (w *relay) heedSignals() (stop func()) {
	var signals Signals
	heeding, done := make(chan struct{}), make(chan struct{})
	w.heeding = heeding
	go func() {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		signals = HeedSignals()
		close(heeding)
		for {
			select {
			case sig := <-signals.Ending:
				w.signal(sig)
			case <-signals.Reload:
				go w.reloader.Reload() // which may wait for a server that does not read
			case <-signals.Restart:
				w.restart()
			case <-done:
				return
			}
		}
	}()
	return func() {
		<-heeding
		signals.Stop()
		close(done)
	}
}

// restart restarts the server.
func (w *relay) restart() {
	if w.control.Restart() {
		w.log.Info("the server is restarted by hand")
		return
	}
	w.log.Warn("the server is not restarted: no client has begun a session with it, or server.restart.on is never")
}

func (w *relay) signal(sig os.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
	if w.server != nil {
		w.server.signal(sig)
		go w.endWith(w.server)
		return
	}
	w.signaled = sig
	w.cancel()
}
