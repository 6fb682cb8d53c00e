package proxytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/record"
)

// patience is how long a line may take to arrive. Inside a bubble of
// testing/synctest it passes at once when no goroutine could send the line.
const patience = 5 * time.Minute

// A Setup defines how a session is run. The zero value is ready to use.
type Setup struct {
	// Options has the options of the relay. Start sets ClientIn, ClientOut, ClientReads and
	// Start, and Log if it is nil.
	Options proxy.Options

	// PipeSize is the capacity of each of the four pipes in bytes; 0 means unlimited. A
	// Linux pipe has 65536 bytes.
	PipeSize int

	// ClientReads means that a client that has closed its output waits for its answers, until
	// CloseInput.
	ClientReads bool

	// StartError, if not nil, is the error of starting the server.
	StartError error
}

// A Session is a running relay between a scripted client and a scripted server.
type Session struct {
	Client, Server *Peer

	t      testing.TB
	size   int             // of pipes
	starts int             // how often the server was started
	server *mempipe.Server // the current one, or the first before it was started
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	log    *logBuffer

	control *proxy.Control

	mu       sync.Mutex
	notes    []string
	startErr error // why the server cannot be started
}

// Start runs a relay with the given layers between a scripted client and server
// until the test is over.
func Start(t testing.TB, layers ...middleware.Layer) *Session {
	t.Helper()
	return Setup{Options: proxy.Options{Layers: layers}}.Start(t)
}

// Start runs a relay until the test is over.
func (c Setup) Start(t testing.TB) *Session {
	t.Helper()
	s := newSession(t, c.PipeSize)
	s.run(c)
	return s
}

func newSession(t testing.TB, size int) *Session {
	s := &Session{
		Client: &Peer{name: "client", t: t},
		Server: &Peer{name: "server", t: t},
		t:      t,
		size:   size,
		done:   make(chan struct{}),
		log:    new(logBuffer),
		server: mempipe.NewServer(size),
	}
	s.Client.connect(mempipe.New(size), mempipe.New(size))
	s.Server.connect(s.server.In, s.server.Out)
	return s
}

func (s *Session) run(c Setup) {
	o := c.Options
	out := &clientOut{s: s}
	o.ClientIn, o.ClientOut = s.Client.output(), out
	o.ClientReads = func() bool { return c.ClientReads && !s.Client.input().Broken() }
	if o.Control == nil {
		o.Control = new(proxy.Control)
	}
	s.control = o.Control
	s.startErr = c.StartError
	o.Start = func(context.Context) (proxy.Upstream, error) { return s.startServer() }
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() {
		defer close(s.done)
		s.err = proxy.Run(ctx, o)
		out.over.Store(true)
		s.Client.input().CloseWrite() // as when the process ends
	}()
	s.t.Cleanup(s.stop)
}

// startServer returns the server, and a new one after the first call.
func (s *Session) startServer() (proxy.Upstream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts++
	if s.startErr != nil {
		return nil, s.startErr
	}
	if s.starts > 1 {
		s.server = mempipe.NewServer(s.size)
		s.Server.connect(s.server.In, s.server.Out)
	}
	return s.server, nil
}

// RefuseStart makes starting the server fail with err from now on, or succeed if err is nil.
func (s *Session) RefuseStart(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.startErr = err
}

func (s *Session) lastServer() *mempipe.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server
}

// clientOut is the relay's stdout. The relay must not write to it after the session.
type clientOut struct {
	s    *Session
	over atomic.Bool
}

// Write implements io.Writer.
func (w *clientOut) Write(b []byte) (int, error) {
	if w.over.Load() {
		w.s.t.Errorf("the relay writes when the session is over: %q", b)
	}
	return w.s.Client.input().Write(b)
}

// stop ends the session after the test.
func (s *Session) stop() {
	s.Client.Close()
	s.lastServer().Exit(nil)
	s.Client.CloseInput()
	<-s.done
	s.cancel()
	if s.t.Failed() {
		s.t.Logf("the relay's log:\n%s", s.log)
	}
}

// Exit ends the server; err is nil for a clean exit.
func (s *Session) Exit(err error) { s.lastServer().Exit(err) }

// Restart ends the server and starts it again. It returns false if the relay would not start it.
func (s *Session) Restart() bool { return s.control.Restart() }

// Cancel cancels the context of the relay.
func (s *Session) Cancel() { s.cancel() }

// Wait waits until the session is over, and returns the error of [proxy.Run].
func (s *Session) Wait() error {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(patience):
		stacks := make([]byte, 1<<20)
		s.t.Fatalf("the session has not ended; all goroutines:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
	return s.err
}

// Over returns a channel that is closed when the session is over.
func (s *Session) Over() <-chan struct{} { return s.done }

// Note records a note of a layer for the test; see [Session.Notes]. It may be called
// from any goroutine.
func (s *Session) Note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// Notes returns the notes so far, and removes them.
func (s *Session) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := s.notes
	s.notes = nil
	return notes
}

// Log returns what the relay has logged so far.
func (s *Session) Log() string { return s.log.String() }

// A Peer is the scripted client or server of a session.
type Peer struct {
	name  string
	t     testing.TB
	pipes atomic.Pointer[pipes] // replaced when the server is started again
}

type pipes struct{ in, out *mempipe.Pipe } // in is read by the peer, out written by it

func (p *Peer) connect(in, out *mempipe.Pipe) { p.pipes.Store(&pipes{in, out}) }
func (p *Peer) input() *mempipe.Pipe          { return p.pipes.Load().in }
func (p *Peer) output() *mempipe.Pipe         { return p.pipes.Load().out }

// Send sends a line. It adds the newline.
func (p *Peer) Send(line string) {
	p.t.Helper()
	p.Write(line + "\n")
}

// Write sends bytes unchanged.
func (p *Peer) Write(raw string) {
	p.t.Helper()
	if _, err := io.WriteString(p.output(), raw); err != nil {
		p.t.Errorf("the %s could not send: %v", p.name, err)
	}
}

// Next returns the next line that reaches the peer, with its line end.
func (p *Peer) Next() []byte {
	p.t.Helper()
	line, err := p.input().ReadLine(patience)
	switch {
	case errors.Is(err, io.EOF):
		p.t.Fatalf("the %s's input has ended", p.name)
	case err != nil:
		p.t.Fatalf("nothing reaches the %s", p.name)
	}
	return line
}

// Expect fails the test unless the next line that reaches the peer is line plus a
// newline.
func (p *Peer) Expect(line string) {
	p.t.Helper()
	if d := record.Diff([]byte(line+"\n"), p.Next()); d != "" {
		p.t.Fatalf("what reached the %s is not what was expected:\n%s", p.name, d)
	}
}

// ExpectEOF fails the test unless the peer sees the end of its input.
func (p *Peer) ExpectEOF() {
	p.t.Helper()
	switch line, err := p.input().ReadLine(patience); {
	case err == nil:
		p.t.Fatalf("a line reached the %s where the end of its input was expected: %q", p.name, line)
	case !errors.Is(err, io.EOF):
		p.t.Fatalf("the %s does not see the end of its input", p.name)
	}
}

// Pending returns how many bytes have reached the peer and were not read.
func (p *Peer) Pending() int { return p.input().Len() }

// AwaitFull waits until a bounded pipe to the peer is full and blocks the relay.
func (p *Peer) AwaitFull() { p.input().AwaitStuck() }

// Close closes the peer's output: the relay's stdin for the client, the server's
// stdout for the server.
func (p *Peer) Close() { p.output().CloseWrite() }

// CloseInput closes the end that the peer reads from. Writes to it fail.
func (p *Peer) CloseInput() { p.input().CloseRead() }

// Raw returns the ends that the peer reads from and writes to, for tests that do
// not read or write lines.
func (p *Peer) Raw() (in io.Reader, out io.Writer) { return p.input(), p.output() }

// logBuffer collects the relay's log.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String returns what was logged.
func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
