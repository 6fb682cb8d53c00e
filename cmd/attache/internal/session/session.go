// Package session runs one relay between the client on stdin and a server: start,
// signals, recording, and reload when the configuration changes.
package session

import (
	"cmp"
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

// Options are what a session needs from the program.
type Options struct {
	Process  cli.Process
	Settings *config.Settings
	Load     func() (*config.Settings, error) // reads the settings again
	Version  string                           // of attache
	Log      *slog.Logger
}

// Run relays one session between the client on stdin and stdout and the server that command
// starts. It returns the server's exit status.
func Run(ctx context.Context, o Options, command []string) int {
	w := &relay{p: o.Process, s: o.Settings, command: command, log: o.Log}
	return w.begin(ctx, o, &assembly.TeamsOptions{Waker: wake.For(w.p, w.s)})
}

// begin assembles the layers and runs the session.
func (w *relay) begin(ctx context.Context, o Options, teams *assembly.TeamsOptions) int {
	p, s, state := w.p, w.s, FileState(w.s)
	w.reports = status.NewRecorder(os.Getpid(), s.Server.Name, w.describe)
	logging.Tee(w.log, w.reports.Log)
	t := telemetry.Start(p, s.Server.Name, o.Version, w.log)
	defer t.Close()
	conn := assembly.ConnOptions{Control: &w.control, Status: w.reports}
	if s.Record != "" {
		conn.IDPrefix = proxy.RandomIDPrefix()
	}
	// One connection is enough: thousands of attaches may share the database.
	db, err := assembly.OpenDatabase(p, s, 1, w.log)
	var shared *assembly.Shared
	if err == nil {
		shared, err = assembly.Compile(assembly.Options{Process: p, Database: db, Telemetry: t.Recorder, Audit: true, UserTurns: true, Teams: teams, Log: w.log}, s)
	}
	if err != nil {
		w.log.Error(err.Error())
		return cli.ExitUsage
	}
	w.conn = shared.Connect(conn)
	w.reloader = NewReloader(shared, o.Load, state, w.log)
	warnSettings(s, w.log)
	if s.Teams.Enabled && s.DryRun {
		w.log.Warn("dry run: teams.enabled has no effect: the session is not registered and carries no messages")
	}
	assembly.WarnWorkspace(s, w.log)
	return w.run(ctx)
}

// A relay is the state of one session.
type relay struct {
	p       cli.Process
	s       *config.Settings
	command []string
	builtin func() *mempipe.Server // nil for a server that command names
	log     *slog.Logger
	conn    *assembly.Conn
	cancel  context.CancelFunc

	notified <-chan struct{} // closed when signals are handled
	control  proxy.Control
	reloader *Reloader
	reports  *status.Recorder
	restarts bool // the server is a process that is started again when it ends

	mu       sync.Mutex
	server   *server
	env      []string  // the environment for every start of the server
	before   *server   // the previous server, until the one that replaces it is ready
	signaled os.Signal // the signal that ended attache before the server was started
	ending   bool      // a signal has ended the session
	withdraw func()    // removes the status report; nil before the server is started
}

// headroom is the size of an allocation that is never touched, so that it costs no memory. It makes
// garbage collections of a session with a remote server rarer: HTTP requests make garbage, and the
// small heap of a session was collected every few hundred requests. growth is the argument of
// debug.SetGCPercent: with the default of 100 the memory of a frame of 1 GiB would double.
const (
	headroom = 10 << 20
	growth   = 50
)

func (w *relay) run(ctx context.Context) int {
	ctx, w.cancel = context.WithCancel(ctx)
	defer w.cancel()
	defer w.handleSignals()()
	defer w.unpublish()
	defer w.conn.Shared().Close()
	defer w.conn.Close()
	if config.IsURL(w.command) {
		defer runtime.KeepAlive(make([]byte, headroom))
		defer debug.SetGCPercent(debug.SetGCPercent(growth))
	}
	o := w.conn.Relay()
	o.ClientIn, o.ClientOut, o.Start = w.p.Stdin, w.p.Stdout, w.start
	if o.Restart = w.conn.Restart(); o.Restart != nil {
		w.restarts = !config.IsURL(w.command)
		record := o.Restart.Restarted
		o.Restart.Wanted = w.wantsRestart
		o.Restart.Restarted = func(exit string, lost int, down time.Duration) {
			record(exit, lost, down)
			w.ready()
		}
	}
	if in, ok := w.p.Stdin.(*os.File); ok {
		w.greet(in)
		o.ClientGone = hungUp(in) // before pollable, because File.Fd makes the descriptor blocking
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

// greet tells a person who started attache by hand that it waits for a client.
func (w *relay) greet(in *os.File) {
	if info, err := in.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 || !term.IsTerminal(in) {
		return
	}
	w.log.Info("waiting for an MCP client on stdin; put this command into a client's configuration, or try `attache demo`")
}

// status logs the error with which the session ended, and returns the exit status.
func (w *relay) status(err error) int {
	w.mu.Lock()
	server, sig := cmp.Or(w.before, w.server), w.signaled
	w.mu.Unlock()
	failure := 0
	switch {
	case errors.Is(err, context.Canceled): // a signal ended the session, perhaps before the start
	case errors.Is(err, proxy.ErrStart):
		w.log.Error(err.Error())
		return cli.ExitNotStarted
	case errors.Is(err, proxy.ErrClientGone):
		w.log.Warn(err.Error())
	case err != nil:
		w.log.Error("the session ended early: the client could not be read or written", "err", err)
		// attache closes its ends itself when the session ends, which may overtake a write.
		if !isClosed(err, w.p.Stdin, w.p.Stdout) && !errors.Is(err, os.ErrClosed) {
			failure = cli.ExitFailure
		}
	}
	if server != nil {
		return cmp.Or(server.status(), failure)
	}
	if s, ok := sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	// The server was not started, because the client sent nothing. That is not an error,
	// but a person who tries a command by hand should learn that it does not exist.
	if err := w.findServer(); err != nil {
		w.log.Error(err.Error())
		return cli.ExitNotStarted
	}
	return failure
}

// start starts the server, for the first time or again, with the facts of the session in its environment.
func (w *relay) start(context.Context) (proxy.Upstream, error) {
	<-w.notified
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending {
		return nil, context.Canceled
	}
	first := w.server == nil
	if first && w.conn.Settings().DryRun && !config.IsURL(w.command) {
		w.log.Info("dry run: would give the server the session's context in its environment", "variables", strings.Join(w.conn.Injected(w.p.Env), " "))
	}
	server, err := w.startServer()
	if err != nil {
		return nil, err
	}
	w.before = cmp.Or(w.before, w.server) // nil at the first start
	w.server = server
	if first {
		if dir := status.Dir(w.p); dir != "" {
			w.withdraw = w.reports.Publish(dir)
		}
		// The files are watched only from now on, because a client may start attache only to probe
		// it. Starting the watch takes some time, and no message should wait for it.
		go w.reloader.Watch()
	}
	return server.upstream, nil
}

// wantsRestart reports whether a server that ends must be started again.
func (w *relay) wantsRestart() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.ending
}

// ready is called when a server that was started again is ready. The exit status of attache is then
// that of the new server.
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

// unpublish removes the status report of this process and stops watching files.
func (w *relay) unpublish() {
	w.mu.Lock()
	withdraw := w.withdraw
	w.mu.Unlock()
	if withdraw != nil {
		withdraw()
	}
	w.reloader.Close()
}

// handleSignals forwards signals to the server until stop is called. It also catches SIGPIPE, so that
// a client that has left causes a write error and the server is stopped in order. It does not ignore
// SIGPIPE, because children inherit ignored signals.
//
// signal.Notify takes some 200 µs, so it runs while the first frame is read, and the start of the
// server waits for it. Until then a signal ends attache like any other program.
func (w *relay) handleSignals() (stop func()) {
	var signals Signals
	notified, done := make(chan struct{}), make(chan struct{})
	w.notified = notified
	go func() {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		signals = NotifySignals()
		close(notified)
		for {
			select {
			case sig := <-signals.Ending:
				w.signal(sig)
			case <-signals.Reload:
				go w.reloader.Reload() // it may wait for a server that does not read
			case <-signals.Restart:
				w.restart()
			case <-done:
				return
			}
		}
	}()
	return func() {
		<-notified
		signals.Stop()
		close(done)
	}
}

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
	if s := w.server; s != nil {
		s.signal(sig)
		go func() { // otherwise the session would go on if s ended before the signal and is about to be started again
			s.status()
			w.cancel()
		}()
		return
	}
	w.signaled = sig
	w.cancel()
}
