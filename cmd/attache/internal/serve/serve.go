package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
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
	"github.com/attache-mcp/attache/cmd/attache/internal/session"
	"github.com/attache-mcp/attache/cmd/attache/internal/status"
	"github.com/attache-mcp/attache/cmd/internal/fronts"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/front"
	"github.com/attache-mcp/attache/sessionstate/database"
)

// Options configure Run.
type Options struct {
	Process cli.Process
	// Settings are the settings of the process: where it listens, and its limits.
	Settings *config.Settings
	// Servers are the servers behind attache, at least one.
	Servers []Server
	// Listeners are the listeners opened by systemd. If there are none, attache listens on
	// serve.listen.
	Listeners []net.Listener
	// Version is the version of attache.
	Version string
	Log     *slog.Logger
}

const (
	// databaseConnections is the maximum number of connections to the shared database.
	databaseConnections = 10
	// headerTime is how long a client may take to send the headers of a request.
	headerTime = 10 * time.Second
	// headroom is the size of an allocation that is never touched, so that it costs no memory.
	// The heap of a front is small, and is collected when it has grown by growth percent. Without
	// the headroom that happened every few hundred requests and took a tenth of the CPU time.
	headroom = 36 << 20
	// growth is the argument of debug.SetGCPercent. With the default of 100 a large heap, such as
	// that of thousands of sessions or a frame of 1 GiB, would double.
	growth = 30
	// connectionIdle is how long a connection without requests is kept.
	connectionIdle = 3 * time.Minute
	maxHeader      = 64 << 10
	// tellTime is how long shutdown may take to tell other fronts about it.
	tellTime = 2 * time.Second
	// arrivalTime is how long shutdown waits for requests on connections without one.
	arrivalTime = 3 * time.Second
	// leaveTime is how long shutdown may take after the drain: the grace period of processes.
	leaveTime = 5 * time.Second
	// hurryTime is how long shutdown may take after a second signal, to write the last answers.
	hurryTime = 500 * time.Millisecond
)

// Run serves until a signal or ctx ends it, and returns the exit status: cli.ExitUsage if the settings
// cannot be used, cli.ExitFailure if attache cannot listen or serve, else 0. It logs the reason.
func Run(ctx context.Context, o Options) int {
	s, err := newService(ctx, o)
	if err != nil {
		o.Log.Error(err.Error())
		return cli.ExitUsage
	}
	defer s.close()
	// The argument is evaluated now, and kept until Run returns.
	defer runtime.KeepAlive(make([]byte, headroom))
	defer debug.SetGCPercent(debug.SetGCPercent(growth)) // sets it now, and at the end what it was
	s.signals = session.NotifySignals()
	defer s.signals.Stop()
	listeners, err := s.listen(ctx)
	if err != nil {
		o.Log.Error(cannotListen("attache cannot listen", err, "--listen"), "err", err)
		return cli.ExitFailure
	}
	return s.run(ctx, listeners)
}

// cannotListen returns text, and what to do if attache cannot listen at the address that key sets.
func cannotListen(text string, err error, key string) string {
	const inUseOnWindows = syscall.Errno(10048) // WSAEADDRINUSE, which package syscall does not name
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, inUseOnWindows) {
		text += ": end what listens there, or"
	} else {
		text += ":"
	}
	return text + " choose another " + key
}

// A service is one run of attache serve.
type service struct {
	Options
	settings   *config.ServeSettings
	limits     *front.Limits // of the process: all endpoints share them
	children   children
	fronts     *fronts.Front      // nil if sessions exist only in this process
	leaseFails bool               // the last renewal of the lease failed
	forker     *child.Forker      // starts all processes
	counts     map[string]*counts // by path
	arrivals   arrivals
	quiet      quietTimer
	accepting  sync.WaitGroup   // the goroutines that accept connections
	database   *database.Server // nil without store.url
	endpoints  []*endpoint
	reports    *status.Recorder
	urls       []string // the URLs of the endpoints; set before reports are published
	signals    session.Signals
}

func newService(ctx context.Context, o Options) (*service, error) {
	for i := range o.Servers {
		o.Servers[i].state = session.FileState(o.Servers[i].Settings) // now, so that no later change is missed
	}
	o.Process.Stderr = logging.NewStderr(o.Process.Stderr) // one writer for all processes keeps their lines whole
	set := &o.Settings.Serve
	limits := front.DefaultLimits()
	limits.Sessions, limits.PerPrincipal = set.Limits.Sessions, set.Limits.PerPrincipal
	limits.InFlight, limits.Body = set.Limits.InFlight, set.Limits.Body
	limits.Bodies = max(limits.Bodies, 2*limits.Body) // one longest body must not keep out all others
	s := &service{Options: o, settings: set, limits: limits, forker: child.NewForker(), quiet: quietTimer{quiet: newMemoryReturner()}}
	s.counts = map[string]*counts{otherPaths: {}}
	s.children = children{max: set.Limits.Children, all: map[*proxy.Control]bool{}}
	s.reports = status.NewRecorder(os.Getpid(), s.names(), s.describe)
	logging.Tee(o.Log, s.reports.Log) // attache status shows warnings
	if err := s.open(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open opens the database and the endpoints, in this order: an endpoint uses the fronts, and they use the
// database.
func (s *service) open(ctx context.Context) (err error) {
	if s.database, err = assembly.OpenDatabase(s.Process, s.Options.Settings, databaseConnections, s.Log); err != nil {
		return err
	}
	s.joinFronts(ctx)
	for _, server := range s.Servers {
		e, err := s.newEndpoint(server)
		if err != nil {
			return err
		}
		s.endpoints = append(s.endpoints, e)
		s.counts[e.Path] = &counts{}
	}
	return cmp.Or(s.checkPaths(), s.checkAddresses())
}

// checkPaths returns an error if two handlers have the same path.
func (s *service) checkPaths() error {
	taken := s.probes()
	for _, e := range s.endpoints {
		if taken[e.Path] != nil || strings.HasPrefix(e.Path, metadataPath) {
			return fmt.Errorf("the path %s is taken: choose another serve.path, or another name for the server", e.Path)
		}
		taken[e.Path] = e.front
	}
	return nil
}

// checkAddresses returns an error if attache would serve other machines without authentication.
func (s *service) checkAddresses() error {
	address := s.reachable()
	if address == "" {
		return nil
	}
	for _, e := range s.endpoints {
		if !e.shared.Authenticates() {
			return fmt.Errorf("attache would listen on %s, which other machines can reach, and without credentials anyone could use %s: make keys with attache key create, or set identity.jwt, or listen on 127.0.0.1",
				address, e.Path)
		}
	}
	return nil
}

// close closes the endpoints and the state that fronts share. An endpoint may wait for a collector or
// for the disk, so all wait at once.
func (s *service) close() {
	var closing sync.WaitGroup
	for _, e := range s.endpoints {
		closing.Go(e.close)
	}
	closing.Wait()
	if s.fronts != nil {
		if err := s.fronts.Close(); err != nil {
			s.Log.Warn("other fronts do not learn at once that this one has ended", "err", err)
		}
	}
	s.forker.Close()
}

// run serves on the listeners until a signal arrives.
func (s *service) run(ctx context.Context, listeners []net.Listener) int {
	server := s.httpServer()
	failed := make(chan error, len(listeners)+1) // nobody reads it after await, so each Serve has its room
	for _, l := range listeners {
		s.accepting.Go(func() { failed <- s.serveOn(server, l) })
	}
	admin, err := s.startAdmin(ctx, failed)
	if err != nil {
		s.Log.Error(cannotListen("attache cannot serve serve.admin", err, "serve.admin"), "address", s.settings.Admin, "err", err)
		_ = server.Close()
		return cli.ExitFailure
	}
	background, stop := context.WithCancel(ctx)
	var leasing sync.WaitGroup
	defer leasing.Wait() // a renewal after Close would register a front that has ended
	defer stop()
	if s.fronts != nil {
		leasing.Go(func() { s.keepLease(background) })
	}
	if s.database != nil {
		go s.database.Listen(background, s.Log)
	}
	s.announce(listeners)
	s.notifySystemd()
	if dir := status.Dir(s.Process); dir != "" {
		defer s.reports.Publish(dir)()
	}
	code := s.await(ctx, failed)
	s.drain(server, listeners)
	if admin != nil {
		_ = admin.Close()
	}
	return code
}

// names returns the names of the servers, separated by commas.
func (s *service) names() string {
	var all []string
	for _, server := range s.Servers {
		all = append(all, server.Settings.Server.Name)
	}
	return strings.Join(all, ", ")
}

// describe adds the endpoints and their sessions to the report of attache status.
func (s *service) describe(r *status.Report) {
	sessions, _ := s.limits.Counts()
	r.Front = &status.Front{URLs: s.urls, Sessions: sessions}
	for _, e := range s.endpoints {
		if e.process && e.Settings.Server.Restart.On != "never" {
			r.Restart = session.CanRestart()
		} else {
			r.Front.Fixed = append(r.Front.Fixed, e.Settings.Server.Name)
		}
	}
}

// announce logs the URLs of the servers.
func (s *service) announce(listeners []net.Listener) {
	for _, e := range s.endpoints {
		for _, l := range listeners {
			at := s.url(l, e)
			s.urls = append(s.urls, at)
			log := s.Log
			if s.settings.PublicURL != "" { // the URL is the same for all fronts
				log = log.With("address", l.Addr().String())
			}
			log.Info("serving", "server", e.Settings.Server.Name, "url", at, "credentials", e.shared.Authenticates())
		}
	}
}

func (s *service) url(listener net.Listener, e *endpoint) string {
	if s.settings.PublicURL != "" {
		return s.resource(e)
	}
	if listener.Addr().Network() == "unix" {
		return "http://unix:" + listener.Addr().String() + ":" + e.Path // as nginx writes it
	}
	scheme := "http"
	if s.settings.Cert != "" {
		scheme = "https"
	}
	return (&url.URL{Scheme: scheme, Host: listener.Addr().String(), Path: e.Path}).String()
}

// await handles signals until the service must end, and returns the exit status.
func (s *service) await(ctx context.Context, failed <-chan error) int {
	for {
		select {
		case <-s.signals.Reload:
			s.Log.Info("the configuration is read again", "signal", "hangup")
			go s.reload() // it may wait, for example for an included file that cannot be fetched
		case <-s.signals.Restart:
			s.Log.Info("the servers are restarted by hand", "sessions", s.children.restart())
		case sig := <-s.signals.Ending:
			s.Log.Info("ending: no new sessions, calls in flight are answered", "signal", sig.String(), "within", s.settings.Drain)
			return 0
		case <-ctx.Done():
			return 0
		case err := <-failed:
			s.Log.Error("attache cannot serve any longer", "err", err)
			return cli.ExitFailure
		}
	}
}

func (s *service) reload() {
	for _, e := range s.endpoints {
		e.reloader.Reload()
	}
}

// drain answers the requests in flight and ends every session. A second signal ends it immediately. Other
// fronts are told first, so that they send no more requests here. The listeners close last: a client that
// still comes then gets an answer which says that nothing was executed.
func (s *service) drain(server *http.Server, listeners []net.Listener) {
	hurried, hurry := context.WithCancel(context.Background())
	defer hurry()
	go func() {
		select {
		case <-s.signals.Ending:
			hurry()
		case <-hurried.Done():
		}
	}()
	ctx, cancel := context.WithTimeout(hurried, s.settings.Drain)
	defer cancel()
	if s.fronts != nil {
		told, stop := context.WithTimeout(context.Background(), tellTime) // serve.drain may be 0s
		if err := s.fronts.Drain(told); err != nil {
			s.Log.Warn("other fronts do not learn that this one ends", "err", err)
		}
		stop()
	}
	var drained sync.WaitGroup
	for _, e := range s.endpoints {
		// Fronts drain at once, because each may need the whole time.
		drained.Go(func() { e.front.Drain(ctx) })
	}
	drained.Wait()
	for _, l := range listeners {
		_ = l.Close()
	}
	s.accepting.Wait() // only then has every accepted connection been counted
	s.arrivals.await(hurried, arrivalTime)
	end, stop := context.WithTimeout(context.Background(), leaveTime) // ctx may be done while answers are still written
	defer stop()
	defer context.AfterFunc(hurried, func() { time.AfterFunc(hurryTime, stop) })()
	if server.Shutdown(end) != nil {
		_ = server.Close()
	}
}

// serveOn serves until the listener or the server is closed. It always returns an error.
func (s *service) serveOn(server *http.Server, l net.Listener) error {
	l = &listener{Listener: l, log: s.Log}
	if s.settings.Cert != "" {
		return server.ServeTLS(l, "", "")
	}
	return server.Serve(l)
}

// httpServer returns the HTTP server for clients. It has no WriteTimeout, which would end
// streams; instead each write has its own deadline. Over HTTP/2 that is the deadline of a stream, and a stream
// cannot even be reset while its connection takes no bytes, so the connection has one too.
func (s *service) httpServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       connectionIdle,
		MaxHeaderBytes:    maxHeader,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: writeTime},
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
	}
	s.arrivals.watch(server)
	if s.settings.Cert != "" {
		c := newCertificate(s.settings.Cert, s.settings.Key, s.Log)
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	}
	return server
}
