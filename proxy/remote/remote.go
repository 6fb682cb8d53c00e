package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/remote/internal/outbox"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Server is one session with a remote server. It is a proxy.Upstream. After Start the caller calls
// Push or Stdout, and then writes messages to Stdin. The methods Again and Returned are those that
// proxy.Restart describes.
type Server struct {
	o        Options
	url      *url.URL
	log      *slog.Logger
	template *http.Request  // copied for each request: http.NewRequest would parse the URL each time
	jar      *cookiejar.Jar // for balancers that keep a session on one machine
	// cookies reports whether the jar has any. Most servers set none, and then no request takes the lock of
	// the jar.
	cookies atomic.Bool
	http1   atomic.Bool   // the last answer came over HTTP/1
	in      *mempipe.Pipe // messages that may have to wait for others
	// queued is how many bytes of in were not handled yet. The Write that raises it from 0 starts run,
	// and run ends when it is 0 again. So at most one run exists, and none for an idle session.
	queued atomic.Int64
	out    *outbox.Outbox
	ctx    context.Context
	cancel context.CancelFunc

	serverRequests callid.Recent // ids of requests of the server
	session        session
	mirror         mirror
	calls          sync.WaitGroup // requests without an answer, and DELETEs of earlier sessions; none is added when ending is set
	ledger         ledger
	slots          chan struct{} // has an element for each request in flight
	resumed        bool          // this session replaces a lost one
	reached        atomic.Bool   // the server has accepted a message, in this session or an earlier one
	unreachable    atomic.Bool   // it could not be reached last time, and that was logged
	lost           chan struct{} // closed when the server no longer knows the session
	loseOnce       sync.Once

	// mu guards open to closeStream. It is never held while the server or the relay is waited for.
	mu sync.Mutex
	// The table is for cancellations and for finish. An answer finds its request without it: it comes in the
	// response to the POST of the request.
	open        callid.Index[exchange] // requests without an answer, by id
	modern      string                 // the version of the last request that named one
	ending      bool                   // nothing more is sent
	err         error                  // why the session has ended
	returned    []byte                 // lines that were not sent, or that the server did not accept
	closeStream context.CancelFunc     // closes the GET stream; nil if there is none
	stopOnce    sync.Once
	finishOnce  sync.Once
	closed      atomic.Bool   // the relay has closed its end; see closeInput
	done        chan struct{} // closed when the session has ended
}

const (
	// pipeSize is how many bytes may wait between the relay and a session.
	pipeSize = 64 << 10
	// maxRequests is how many requests may be in flight. Others wait in goroutines of their own.
	maxRequests = 512
	// grace is how long the server has for its last answers after Stop, and endTime how long it has
	// to answer the DELETE. Clients kill their servers after two seconds.
	grace   = 1500 * time.Millisecond
	endTime = 300 * time.Millisecond
)

// CheckURL returns an error that says what is wrong with the URL of a server. Its text has no
// subject, such as "has no host: …": the caller writes what the URL belongs to in front of it.
func CheckURL(address string) error {
	_, err := parseURL(address)
	return err
}

func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("is not an address: write one such as https://mcp.example.com/mcp")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("does not begin with https:// or http://: write one such as https://mcp.example.com/mcp")
	case u.Hostname() == "":
		return nil, errors.New("has no host: write an address such as https://mcp.example.com/mcp")
	case u.Port() != "" && !isPort(u.Port()):
		return nil, fmt.Errorf("has the port %s: write one between 1 and 65535", u.Port())
	case u.User != nil:
		return nil, errors.New("has a user or a password in it: put an Authorization header into server.headers")
	case u.Fragment != "":
		return nil, errors.New("has a fragment: remove what follows #")
	}
	return u, nil
}

func isPort(number string) bool {
	n, err := strconv.ParseUint(number, 10, 16)
	return err == nil && n > 0
}

// Start begins a session. Nothing is sent before the first message. The only error is that of
// CheckURL.
func Start(o Options) (*Server, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("the server's address %w", err)
	}
	if o.Hold <= 0 {
		o.Hold = wire.DefaultHold
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Transport == nil {
		o.Transport = NewTransport(TransportOptions{})
	}
	s := &Server{
		o: o, url: u, log: o.Log,
		in:       mempipe.New(pipeSize),
		out:      outbox.New(o.Hold),
		template: &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		slots:    make(chan struct{}, maxRequests),
		open:     callid.NewIndex[exchange](),
		done:     make(chan struct{}),
		lost:     make(chan struct{}),
	}
	// One jar for each session: two sessions must not share the cookie that binds one of them to a machine.
	s.jar, _ = cookiejar.New(nil) // never fails
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.ledger.init(s.ctx, o.Hold)
	s.mirror.all = o.Forward != nil
	return s, nil
}

// Stdin returns the writer for messages to the server.
func (s *Server) Stdin() io.WriteCloser { return stdin{s} }

// A stdin receives the messages of the relay, from one goroutine at a time.
type stdin struct{ s *Server }

// Write implements io.Writer. b is counted before it is in the pipe, so that run, which may be about
// to end, sees that more comes.
func (i stdin) Write(b []byte) (int, error) {
	if n := int64(len(b)); i.s.queued.Add(n) == n && n > 0 {
		go i.s.run()
	}
	return i.s.in.Write(b)
}

// Take implements wire.MessageTaker: it sends a request that need not wait for other messages. Waking
// the goroutine of run would take longer than sending the request. Take must not block, so it leaves to run
// what would wait: initialize, a message over the hold limit, and one for which the ledger has no room.
// While messages are queued it takes none, because a request must not overtake them.
func (i stdin) Take(m *wire.Message) bool {
	s, n := i.s, len(m.Line())
	if !m.Plain() || m.Kind() != wire.Request || m.MethodIs("initialize") || len(m.LineEnd()) == 0 ||
		s.queued.Load() > 0 || n > s.o.Hold || callid.Clean(m.ID()) == nil || !s.ledger.hasRoom(n) {
		return false
	}
	line, lease := m.KeepLine()
	s.sendMessage(m, line, lease) // keepOrder does not wait behind a request
	return true
}

// Close implements io.Closer.
func (i stdin) Close() error {
	i.s.closeInput()
	return nil
}

// Push implements wire.Pusher. It is called before the first message.
func (s *Server) Push(to wire.Sink) { s.out.Push(to) }

// Stdout returns a reader of the server's lines, for callers that do not use Push. It is called once.
func (s *Server) Stdout() io.Reader {
	p := mempipe.New(4 * pipeSize)
	s.Push(pipeSink{p})
	return p
}

// A pipeSink writes lines to a pipe.
type pipeSink struct{ *mempipe.Pipe }

// Line implements wire.Sink.
func (p pipeSink) Line(m *wire.Message, _ bool) error {
	_, err := p.Write(m.Line())
	return err
}

// Lines implements wire.Sink.
func (p pipeSink) Lines(begun []byte, from io.Reader) error {
	_, err := io.Copy(p.Pipe, io.MultiReader(bytes.NewReader(begun), from))
	return err
}

// End implements wire.Sink.
func (p pipeSink) End() { _ = p.CloseWrite() }

// Stop ends the session and returns when it has ended. Requests in flight have 1.5 s to be answered;
// then the server is told that the session ends. Stop may be called more than once, and at any time.
func (s *Server) Stop() {
	s.stopOnce.Do(func() {
		s.closeInput()
		// Without waiting for run, which may wait for the server.
		end := time.AfterFunc(grace, s.cancel)
		// Otherwise the timer would keep a session that ended in time in memory until grace is over.
		context.AfterFunc(s.ctx, func() { end.Stop() })
	})
	<-s.done
}

// Again tells s that it replaces a session that has reached the server. It is called before the first
// message.
func (s *Server) Again() {
	s.resumed = true
	s.reached.Store(true)
}

// Wait returns when the session has ended. The error says why; it is nil if Stop or the relay has
// ended the session. An error with a method SessionLost means that the server no longer knows the
// session: another one can take its place.
func (s *Server) Wait() error {
	<-s.done
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// run sends the messages in the pipe until it is empty. A reader keeps no bytes beyond those that are
// queued, so each run can have a reader of its own. A line that has only begun is queued, so run waits for
// the rest.
func (s *Server) run() {
	r := wire.NewReader(s.in, s.o.Hold)
	for {
		line, more, err := r.Next()
		n := int64(len(line))
		switch {
		case err != nil:
			s.finishOnce.Do(s.finish)
			return
		case more:
			// sendLong reads the rest of the line, so the length of line is only that of its beginning.
			n = s.sendLong(r, line)
		default:
			s.sendLine(line)
		}
		if s.queued.Add(-n) == 0 {
			s.endInput()
			return
		}
	}
}

// closeInput records the end of the relay's messages. It sets closed before it reads queued, and run
// changes queued before it reads closed. So at least one of the two calls [Server.finish].
func (s *Server) closeInput() {
	s.in.CloseWrite()
	s.closed.Store(true)
	if s.queued.Load() == 0 {
		go s.endInput()
	}
}

// endInput ends the session if the relay has closed its end and all messages were sent.
func (s *Server) endInput() {
	if s.closed.Load() {
		s.finishOnce.Do(s.finish)
	}
}

// finish ends the session: it waits for the last answers, sends DELETE, and stops what still runs.
func (s *Server) finish() {
	s.mu.Lock()
	s.ending = true // from here on enter adds nothing to calls, which must not grow during Wait
	for x := range s.open.All {
		if x.cancelled.Load() && len(x.more) == 0 { // the server need not answer it
			x.cancel(nil)
		}
	}
	s.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-s.ctx.Done():
	}
	s.replaceStream(nil)
	if !s.isLost() {
		// A server that has lost the session has nothing to end.
		s.endSession(s.session.ticket(), endTime)
	}
	s.cancel()
	if s.isLost() { // wait for messages that are given back
		select {
		case <-answered:
		case <-time.After(endTime):
		}
	}
	s.out.End()
	close(s.done)
}

// beginSession records that the client opens a new session, and ends the session before it. The DELETE is sent
// beside: a server that does not answer it must not delay initialize.
func (s *Server) beginSession() {
	before := s.session.begin()
	s.replaceStream(nil)
	if before.id != "" {
		s.calls.Go(func() { s.endSession(before, settleTime) }) // the end waits for it
	}
}

// endSession sends DELETE for a session. Servers may refuse it.
func (s *Server) endSession(t ticket, limit time.Duration) {
	if t.id == "" {
		return
	}
	// The context of the server may be done already, so it is not used.
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	h := http.Header{}
	t.headers(h)
	resp, err := s.send(ctx, http.MethodDelete, h, nil)
	if err != nil {
		s.log.Debug("the remote session could not be ended", "why", err)
		return
	}
	drain(resp)
}
