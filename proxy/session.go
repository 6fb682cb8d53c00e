package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/internal/asks"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/inflight"
	"github.com/attache-mcp/attache/proxy/internal/noise"
	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A session is one run of the relay.
type session struct {
	o      Options
	log    *slog.Logger
	ctx    context.Context // of handlers and hooks, which still run at the end; done when Run returns
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

	// No goroutine holds the mutexes of both: each may be held by a write for as long as a peer
	// likes. What is for the other direction is queued, or done by another goroutine.
	c clientSide
	v serverSide

	upMu     sync.Mutex        // held while the upstream is being started
	startErr error             // why it was not, and will not be
	started  chan *revive.Link // receives the first link; has room for it, because the session may be over

	going       context.Context // done when the session has to end
	leave       context.CancelFunc
	deferredCtx context.Context // of what answers deferred calls; done when ending is closed
	endDeferred context.CancelFunc
	goodbye     atomic.Bool   // the client closed its end in good order; set before the upstream sees it
	heard       atomic.Bool   // all that the client said, and the end of it, was passed on
	ending      chan struct{} // closed when the upstream is gone: nothing is held back any longer
	over        atomic.Bool   // Run returns: nothing is written, watched or logged any more

	failure atomic.Pointer[error] // the first error, which ends the session
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
	s.link.Store(l) // before the first line is read: the server's direction expects a link
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

// watch passes a line to Options.Watch, if set, but none after Run has returned: what Watch writes to may
// be closed then.
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
	first := err // err itself would be allocated for each message
	if s.failure.CompareAndSwap(nil, &first) {
		s.leave()
	}
	return err
}

// failureSoFar returns the error that the session ends with, nil if there is none yet.
func (s *session) failureSoFar() error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return nil
}
