package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
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

// Options say which server to reach, and how. URL is needed; the zero value of all else
// is a default.
type Options struct {
	// URL is the address of the server: http or https, without a user or a password.
	URL string

	// Header goes with every request.
	Header http.Header

	// Credentials, if not nil, say who sends a request.
	Credentials Credentials

	// Transport sends the requests. It is shared by many servers; nil stands for one
	// made by NewTransport with no options.
	Transport http.RoundTripper

	// Hold is how long a message to the server may be to be held whole, in bytes, and
	// how much of unfinished messages of the server is held in all; 0 stands for 8 MiB.
	Hold int

	// FirstByte is how long the server may take to begin its answer; 0 stands for any
	// time. A server that answers with JSON begins when the tool has ended.
	FirstByte time.Duration

	// Forward, if not nil, returns the headers that a client sent with the request of a raw
	// id, nil for none. Of them go on those of arguments (Mcp-Param-…) that the called tool
	// does not have; once the server has listed the tool.
	Forward func(id []byte) http.Header

	// Wait is how long a message waits for a server that cannot be reached, or answers
	// 503 with Retry-After, once it has been; 0 stands for not at all. Only what the
	// server cannot have executed waits.
	Wait time.Duration

	// Log takes what a person may want to know; nil discards it.
	Log *slog.Logger
}

// Credentials say who sends a request. Its methods are called from many goroutines.
type Credentials interface {
	// Set sets the headers of a request that is about to leave, such as Authorization.
	// Its error is what the request is answered with.
	Set(ctx context.Context, h http.Header) error

	// Refused is called when the server answers 401 or 403. It reports whether Set
	// now has other credentials: then the request is sent again, once. The error, if
	// not nil, is what the request is answered with.
	Refused(ctx context.Context, r Refusal) (again bool, err error)
}

// A Refusal is what a server says that does not accept a credential.
type Refusal struct {
	Status    int         // 401 or 403
	Sent      http.Header // of the request that was refused
	Challenge []string    // the values of WWW-Authenticate
	Said      string      // the beginning of its text
}

// A Server is one session with a remote server. It is a proxy.Upstream.
type Server struct {
	o        Options
	url      *url.URL
	log      *slog.Logger
	template *http.Request
	jar      http.CookieJar // for balancers that keep a session on one machine
	cookies  atomic.Bool    // there are some
	in       *mempipe.Pipe  // of messages that may have to wait for others
	inside   atomic.Int64   // bytes that were written to it and are not handled yet
	out      *outbox.Outbox
	ctx      context.Context
	cancel   context.CancelFunc

	asked   callid.Recent // ids of requests of the server's
	session session
	mirror  mirror
	listen  listener
	calls   sync.WaitGroup // requests that are not answered; none begins when ending is set
	ledger  ledger
	slots   chan struct{} // how many requests may be under way
	again   bool          // another session was lost before this one
	reached atomic.Bool   // the server has taken a message, in this session or one before
	away    atomic.Bool   // it could not be reached the last time, and that was logged
	lost    chan struct{} // closed when the server does not know the session any more
	losing  sync.Once

	mu     sync.Mutex
	open   callid.Index[exchange] // requests that are not answered, by id
	modern string                 // the version of the last request that named one
	ending bool                   // nothing is sent any more
	err    error                  // how the session ended
	back   []byte                 // lines that were not sent, or not taken by the server
	stop   sync.Once
	end    sync.Once
	closed atomic.Bool   // the relay has no more to say
	gone   chan struct{} // closed when the session is over
}

const (
	// pipeSize is how much waits between the relay and a session.
	pipeSize = 64 << 10
	// maxRequests is how many requests are under way at once.
	maxRequests = 512
	// grace is how long the server has for its last answers once Stop was called, and
	// farewell how long it has to end the session. Clients give us two seconds.
	grace    = 1500 * time.Millisecond
	farewell = 300 * time.Millisecond
)

// CheckURL says what is wrong with the address of a server.
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

// isPort reports whether a number of a port may be one.
func isPort(number string) bool {
	n, err := strconv.ParseUint(number, 10, 16)
	return err == nil && n > 0
}

// Start begins a session. Nothing is sent before the first message.
func Start(o Options) (*Server, error) {
	u, err := parseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("the server's address %w", err)
	}
	if o.Hold <= 0 {
		o.Hold = wire.DefaultHold
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Transport == nil {
		o.Transport = NewTransport(TransportOptions{})
	}
	s := &Server{
		o: o, url: u, log: o.Log,
		in:       mempipe.New(pipeSize),
		out:      outbox.New(o.Hold),
		jar:      newJar(),
		template: &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1},
		slots:    make(chan struct{}, maxRequests),
		open:     callid.NewIndex[exchange](),
		gone:     make(chan struct{}),
		lost:     make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.ledger.init(s.ctx, o.Hold)
	s.mirror.all = o.Forward != nil
	return s, nil
}

// Stdin returns what the relay writes to.
func (s *Server) Stdin() io.WriteCloser { return stdin{s} }

// A stdin takes the messages of the relay, from one goroutine at a time.
type stdin struct{ s *Server }

// Write implements io.Writer.
func (i stdin) Write(b []byte) (int, error) {
	if n := int64(len(b)); i.s.inside.Add(n) == n && n > 0 {
		go i.s.run()
	}
	return i.s.in.Write(b)
}

// Take implements wire.MessageTaker: it takes a request that has to wait for nothing. To wake the
// goroutine of run for it would take longer than to send it.
func (i stdin) Take(m *wire.Message) bool {
	s, n := i.s, len(m.Line())
	if !m.Plain() || m.Kind() != wire.Request || m.MethodIs("initialize") || len(m.LineEnd()) == 0 ||
		s.inside.Load() > 0 || n > s.o.Hold || callid.Clean(m.ID()) == nil || !s.ledger.hasRoom(n) {
		return false
	}
	line, lease := m.KeepLine()
	s.sendMessage(m, line, lease)
	return true
}

// Close ends what the relay has to say.
func (i stdin) Close() error {
	i.s.closeInput()
	return nil
}

// Push implements wire.Pusher. It is called before the first message.
func (s *Server) Push(to wire.Sink) { s.out.Push(to) }

// Stdout returns a reader of the lines, for those who do not have them pushed.
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

// Stop ends the session and returns when it is over: requests under way have 1.5 s to
// be answered, and then the server is told that the session ends.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.closeInput()
		// run may wait for the server too, so the end does not wait for run.
		end := time.AfterFunc(grace, s.cancel)
		context.AfterFunc(s.ctx, func() { end.Stop() })
	})
	<-s.gone
}

// Again says that an earlier session has reached the server. It is called before the first
// message.
func (s *Server) Again() {
	s.again = true
	s.reached.Store(true)
}

// Wait returns when the session is over. The error says why it ended, nil if Stop or
// the relay ended it.
func (s *Server) Wait() error {
	<-s.gone
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// run sends the messages that wait in the pipe, until it has sent all of them.
func (s *Server) run() {
	r := wire.NewReader(s.in, s.o.Hold)
	for {
		line, more, err := r.Next()
		n := int64(len(line))
		switch {
		case err != nil:
			s.end.Do(s.finish)
			return
		case more:
			n = s.sendLong(r, line)
		default:
			s.sendLine(line)
		}
		if s.inside.Add(-n) == 0 {
			s.endInput()
			return
		}
	}
}

// closeInput notes that the relay has no more to say.
func (s *Server) closeInput() {
	s.in.CloseWrite()
	s.closed.Store(true)
	if s.inside.Load() == 0 {
		go s.endInput()
	}
}

// endInput ends the session if the relay has no more to say and all of it was sent.
func (s *Server) endInput() {
	if s.closed.Load() {
		s.end.Do(s.finish)
	}
}

// finish ends the session: the last answers, the farewell, and the end of all that
// still runs.
func (s *Server) finish() {
	s.mu.Lock()
	s.ending = true
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
	s.listen.stop()
	if !s.isLost() {
		s.endSession(s.session.ticket(), farewell)
	}
	s.cancel()
	if s.isLost() { // what was not sent is given back
		select {
		case <-answered:
		case <-time.After(farewell):
		}
	}
	s.out.End()
	close(s.gone)
}
