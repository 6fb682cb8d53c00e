// Package proxy relays one MCP session over stdio between a client and a server.
//
// [Run] does all of it. [Options] have the two ends of the client, a function that
// starts the server when the first frame is on its way to it, and the layers that look
// at the messages. The server is an [Upstream]: package child makes one of a process,
// package mempipe one of a server in this process. The packages below middleware have
// layers; compile them once, and connect them for each client. The example shows a
// whole program.
//
// Each direction has one goroutine that reads a line, looks at it once, runs the layers, and
// writes; or a [wire.Pusher] brings the lines, one at a time. There is no goroutine for a request
// and no queue between the directions: a peer that does not read slows the peer that writes to it,
// and memory stays bounded. What no layer edits leaves as the bytes it came in.
//
// A table has the calls in flight, from the arrival of a request until its one reply
// has left. So a layer can take a reply ([middleware.Call.OnReply]), and every request
// is answered when the server dies.
//
// A server that ends under its client is started again where [Options.Restart] says so:
// see docs/restart.md. The calls it was running are not repeated.
//
// The package does not know sessions, identities or policies: layers do. It handles no
// signals and does not set file descriptors to non-blocking: the program does.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/internal/asks"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/inflight"
	"github.com/attache-mcp/attache/proxy/internal/noise"
	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// An Upstream is the wrapped server as the relay sees it.
type Upstream interface {
	// Stdin takes what the client sends. Closing it tells the server to leave.
	Stdin() io.WriteCloser
	// Stdout is read to its end, unless the server is a [wire.Pusher].
	Stdout() io.Reader
	// Stop ends the server, gently first, and returns when it is gone. It may
	// be called more than once, and while another call is under way.
	Stop()
	// Wait returns when the server is gone. The error tells the client how it ended and, after a
	// semicolon, what else is known; nil stands for a clean exit.
	Wait() error
}

// A Point is a place where lines can be watched.
type Point uint8

// The points, in the order a request and its reply pass them. The last three are moments; their
// lines are those of package record.
const (
	ClientIn    Point = iota // read from the client
	ServerIn                 // written to the upstream
	ServerOut                // read from the upstream
	ClientOut                // written to the client
	ServerExit               // the upstream has ended, and not because the session has
	ServerStart              // another upstream has started in its place
	ServerStop               // the upstream has ended because the session has, during calls
)

func (p Point) String() string {
	return [...]string{"client-in", "server-in", "server-out", "client-out", "server-exit", "server-start", "server-stop"}[p]
}

// Options say what to relay and how. ClientIn, ClientOut and Start are required; every other
// zero value is a default.
type Options struct {
	ClientIn  io.Reader
	ClientOut io.Writer

	// ClientLines, if not nil, brings the lines of the client, in place of ClientIn.
	ClientLines wire.Pusher

	// Start starts the upstream. It is called when the first frame is on its way to the
	// upstream, so facts that this frame told the layers can go into the upstream's environment.
	// Its error is the answer to that frame and is returned by Run. With Restart it is called
	// again when the upstream has ended. ctx bounds the start only: the relay itself ends the
	// upstream, with Stop, when the session ends.
	Start func(ctx context.Context) (Upstream, error)

	// Restart, if not nil, says how an upstream that has ended is started again.
	Restart *Restart

	// Layers run on plain frames; the first one sees a frame from the client first. The relay
	// does what each of them needs: see [middleware.Layer].
	Layers []middleware.Layer

	// DryRun sends on, and logs, frames that are otherwise refused because a layer Enforces. The
	// layers themselves must change nothing. A frame with something that a layer has Guarded is
	// still refused.
	DryRun bool

	// Hold is the length in bytes of the longest line that is held whole; 0 means 8 MiB. A
	// longer line is streamed.
	Hold int

	// InFlight is how many calls may be in flight before the client has to wait; 0 means
	// 100,000.
	InFlight int

	// ForwardNoise sends lines of the upstream that are no messages to the client. Without it
	// they are dropped and logged.
	ForwardNoise bool

	// ClientGone, if not nil, is closed when the client has hung up. A relay that waits for the
	// upstream to read cannot see that itself. If there is no progress for a while after that,
	// the session ends with ErrClientGone.
	ClientGone <-chan struct{}

	// ClientReads, if not nil, reports whether somebody still reads ClientOut. Then a client that has
	// closed its end gets the answers to its calls, within an hour. If it is nil, attache waits for
	// them a minute at most, and with ClientLines not at all.
	ClientReads func() bool

	// Control, if not nil, lets others act on the session while it runs.
	Control *Control

	// Aside, if not nil, is called with every request, notification and ambiguous frame of the
	// client that layers do not see. It runs in the client's direction and must not block.
	Aside func(Aside)

	// Watch, if not nil, is called with every line that passes a point; a line over the hold
	// limit is passed as nil. It must not keep line, and is called from both directions.
	Watch func(at Point, line []byte)

	// IDPrefix begins the ids of attache's own requests; "" means 8 random digits. A replay
	// sets it, so that two runs write the same bytes.
	IDPrefix string

	// Log receives what a person may want to know; nil discards it.
	Log *slog.Logger
}

const (
	defaultInFlight = 100_000
	// minIDs is how many bytes of long ids may be in flight, however little a
	// line may hold.
	minIDs = 1 << 20
	// drainTime bounds the waits for a reader that is gone or stuck at the end.
	drainTime = time.Second
	// closeTime is how long the end waits at least for what is under way and not
	// stuck.
	closeTime = 50 * time.Millisecond
)

// RandomIDPrefix returns an [Options.IDPrefix] of the kind that a relay without one has.
func RandomIDPrefix() string { return asks.RandomPrefix() }

// ErrStart wraps the error of an upstream that could not be started.
var ErrStart = errors.New("the server could not be started")

// ErrClientGone is what Run returns when the client has hung up and the upstream
// no longer takes what the client had said.
var ErrClientGone = errors.New("the client has hung up and the server does not read")

// errOver is the error of a frame that comes after the end of the session.
var errOver = errors.New("the session is over")

// Run relays one session and returns when it is over: the client closed its end, the upstream
// ended, or ctx was done. In each case the upstream is gone, and its messages have reached the
// client if the client still reads.
//
// The error is ErrStart, a failure to read from or write to the client, or the error of a layer;
// the end of the upstream is no error, and neither is the end of ctx. If a required option is
// missing, Run returns an error immediately. A goroutine may stay in a read of ClientIn until the
// caller closes it; what it reads has no effect. One may stay in a write to ClientOut if the
// client does not read.
func Run(ctx context.Context, o Options) error {
	if o.ClientIn == nil && o.ClientLines == nil || o.ClientOut == nil || o.Start == nil { // a goroutine would panic
		return errors.New("a required option is missing: set ClientIn, ClientOut and Start of proxy.Options")
	}
	s := newSession(ctx, o)
	s.listenToClient()
	if o.ClientGone != nil {
		go s.watchClient()
	}
	s.supervise()
	return s.finish()
}

// A session is one run of the relay.
type session struct {
	o      Options
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc

	// Both directions read these for each message; what one of them writes stands apart.
	toClient   *wire.Writer
	calls      *inflight.Table
	asks       *asks.Table
	supervisor *revive.Supervisor          // nil without Options.Restart
	link       atomic.Pointer[revive.Link] // nil before the upstream is started

	noise       noise.Counter
	backlog     flow.Backlog
	unseen      callid.Recent // of calls that attache answered without the upstream
	heldReplies callid.Recent // of calls whose reply had to be held and which have had one
	held        atomic.Int64  // bytes of replies that are held back
	work        tasks.Group   // beside the two pumps
	deferred    tasks.Group   // answers to calls that layers deferred

	c clientSide
	v serverSide

	upMu     sync.Mutex // held while the upstream is being started
	startErr error
	started  chan *revive.Link // receives the first link

	going       context.Context // done when the session has to end
	leave       context.CancelFunc
	deferredCtx context.Context // of what answers deferred calls; done when ending is closed
	endDeferred context.CancelFunc
	goodbye     atomic.Bool   // the client closed its end in good order; set before the upstream sees it
	heard       atomic.Bool   // all that the client said, and the end of it, was passed on
	ending      chan struct{} // closed when the upstream is gone: nothing is held back any longer
	over        atomic.Bool   // Run returns: nothing is written, watched or logged any more

	failOnce sync.Once
	failed   chan struct{}
	failure  error // why failed was closed
}

func newSession(ctx context.Context, o Options) *session {
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	if o.Hold <= 0 {
		o.Hold = wire.DefaultHold
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &session{
		o: o, log: o.Log,
		toClient: wire.NewWriter(o.ClientOut),
		asks:     asks.New(o.IDPrefix),
		backlog:  flow.Backlog{Limit: int64(o.Hold)},
		started:  make(chan *revive.Link, 1),
		ending:   make(chan struct{}),
		failed:   make(chan struct{}),
	}
	s.calls = inflight.New(o.InFlight, max(o.Hold, minIDs), s.newCall)
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.going, s.leave = context.WithCancel(s.ctx)
	s.deferredCtx, s.endDeferred = context.WithCancel(s.ctx)
	s.noise.Log = o.Log
	if o.Restart != nil {
		s.supervisor = newSupervisor(s, *o.Restart)
	}
	s.c.ctx.Context, s.v.ctx.Context = s.ctx, s.ctx
	// Frames that are not requests have a call too, so that no layer has to check for nil.
	s.c.none.init(s)
	s.v.none.init(s)
	cmp.Or(o.Control, new(Control)).attach(s, Rules{o.Layers, o.DryRun})
	return s
}

// start starts the upstream, unless it was started or the session is over.
func (s *session) start() error {
	s.upMu.Lock()
	defer s.upMu.Unlock()
	if s.link.Load() != nil || s.startErr != nil {
		return s.startErr
	}
	up, err := s.o.Start(s.ctx)
	if err != nil {
		s.startErr = fmt.Errorf("%w: %w", ErrStart, err)
		return s.startErr
	}
	l := revive.NewLink(s.linkOptions(), revive.Ending{})
	l.Connect(up)
	l.Open()
	s.link.Store(l)
	l.Read(serverLines{s})
	s.started <- l
	return nil
}

// lastLink returns the link; nil if no upstream was started, and then none will be.
func (s *session) lastLink() *revive.Link {
	s.upMu.Lock()
	defer s.upMu.Unlock()
	l := s.link.Load()
	if l == nil && s.startErr == nil {
		// With this, start starts no upstream that nobody would end.
		s.startErr = errOver
	}
	return l
}

func (s *session) watch(at Point, line []byte) {
	if s.o.Watch != nil && !s.over.Load() {
		s.o.Watch(at, line)
	}
}

// fail ends the session with an error, if there is one, and returns it. The first error counts.
func (s *session) fail(err error) error {
	if err == nil || errors.Is(err, errOver) {
		return err // it is over already
	}
	s.failOnce.Do(func() {
		s.failure = err
		close(s.failed)
		s.leave()
	})
	return err
}

// failureSoFar returns the error that the session ends with, nil if there is none yet.
func (s *session) failureSoFar() error {
	select {
	case <-s.failed:
		return s.failure
	default:
		return nil
	}
}
