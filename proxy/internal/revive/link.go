package revive

import (
	"bytes"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Server is a server that was started: proxy.Upstream.
type Server interface {
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Stop()
	Wait() error
}

// A Link is one life of the server: from when it is wanted until it is gone and its
// output has been read. What concerns that life alone is here, and not in the session.
// A session has one link at a time. Make one with NewLink.
type Link struct {
	In     *wire.Writer  // to the server's stdin
	Gate   *Gate         // behind In; shut until the server is ready
	Unsent Lines         // that could not be written
	Unread callid.Unread // ids of cancelled calls whose replies must be held

	o         LinkOptions
	server    atomic.Pointer[Server] // nil before it is started
	before    Ending                 // of the server before
	broken    atomic.Bool            // the server takes no more input
	streaming atomic.Bool            // a line is being written in chunks, which are no lines
	stopping  atomic.Bool            // the server is being ended, and another one may follow
	moved     atomic.Int64           // lines and chunks that were written
	said      atomic.Int64           // how often its output was read, if that is counted
	started   time.Time              // when the server was started; like ready, of who starts it
	ready     time.Time              // when the server was ready
	ended     chan struct{}          // closed when the server's output has been read to its end

	late     atomic.Bool // the server's output did not end soon after its input
	awaitEnd sync.Once   // begins that wait
}

// LinkOptions say how a link works.
type LinkOptions struct {
	Count   bool              // counts what is read of the server
	Limit   int               // how many bytes wait for the server before the writer does
	Hold    time.Duration     // how long a line waits for the server
	Expired func(*Link)       // called when a line has waited for that long
	Watch   func(line []byte) // shown every message that is written; nil for nothing
}

// NewLink returns the link of a server that is to be started. before says how the server
// before it ended.
func NewLink(o LinkOptions, before Ending) *Link {
	l := &Link{o: o, before: before, ended: make(chan struct{})}
	l.Gate = newGate(l)
	l.In = wire.NewWriter(linkInput{l})
	return l
}

// Connect gives the link its server.
func (l *Link) Connect(server Server) {
	l.started = time.Now()
	if s, ok := server.(interface{ StartedAt() time.Time }); ok {
		l.started = s.StartedAt()
	}
	l.server.Store(&server)
}

// Started reports whether the link has a server.
func (l *Link) Started() bool { return l.server.Load() != nil }

// Read has to take the server's output to its end: handed over by the server itself, or read on a
// goroutine of its own.
func (l *Link) Read(to LineTaker) {
	server, lines := *l.server.Load(), linkOutput{to, l}
	if p, ok := server.(wire.Pusher); ok {
		p.Push(lines)
		return
	}
	go func() {
		defer lines.End()
		_ = lines.Lines(nil, server.Stdout())
	}()
}

// A LineTaker takes the lines of a server, as a wire.Sink without the end.
type LineTaker interface {
	Line(m *wire.Message, more bool) error
	Lines(begun []byte, from io.Reader) error
}

// linkOutput is the server's output. It notes when the server says something, and the end.
type linkOutput struct {
	to LineTaker
	l  *Link
}

// Line implements wire.Sink.
func (s linkOutput) Line(m *wire.Message, more bool) error {
	if s.l.o.Count {
		s.l.said.Add(1)
	}
	return s.to.Line(m, more)
}

// Lines implements wire.Sink.
func (s linkOutput) Lines(begun []byte, from io.Reader) error {
	if s.l.o.Count {
		from = countingReader{from, &s.l.said}
	}
	return s.to.Lines(begun, from)
}

// End implements wire.Sink.
func (s linkOutput) End() { close(s.l.ended) }

// Open lets frames through to a server that need not be told anything.
func (l *Link) Open() {
	l.ready = time.Now()
	l.Gate.Open(l.stdin(), nil)
}

// Ended returns a channel that is closed when the server's output has been read to its
// end.
func (l *Link) Ended() <-chan struct{} { return l.ended }

// Before returns how the server before ended.
func (l *Link) Before() Ending { return l.before }

// Moved returns how many lines and chunks were written; to no server, none.
func (l *Link) Moved() int64 {
	if l == nil {
		return 0
	}
	return l.moved.Load()
}

func (l *Link) stdin() io.WriteCloser {
	if server := l.server.Load(); server != nil {
		return (*server).Stdin()
	}
	return nil
}

// Write writes a message to the server. That it cannot be written any more is no error
// of the session: see Unsent.
func (l *Link) Write(m *wire.Message) {
	if !l.keeps(m.Line(), true) && l.In.Write(m) != nil {
		l.Unsent.Add(m.Line())
	}
	l.moved.Add(1)
}

// keeps shows a line on its way to the server, if somebody watches. A line for a server that
// is not ready is kept at once, and shown when it leaves: keeps then reports true.
func (l *Link) keeps(line []byte, wait bool) bool {
	if l.o.Watch == nil {
		return false
	}
	kept, err := l.Gate.KeepShut(line, wait)
	if !kept && err == nil {
		l.o.Watch(line)
	}
	return kept
}

// show shows lines on their way to the server, if somebody watches.
func (l *Link) show(lines []byte) {
	if l.o.Watch == nil {
		return
	}
	for line := range bytes.Lines(lines) {
		l.o.Watch(line)
	}
}

// Queue queues a message of attache's own. late is called if something could not be
// written by the time it should have left: then it counts as not sent, and a reply to it
// is swallowed even when it comes after all.
func (l *Link) Queue(m *wire.Message, late func()) {
	if l.keeps(m.Line(), false) {
		return
	}
	l.In.Queue(m.Line(), func(error) {
		if l.broken.Load() {
			l.Unsent.Add(m.Line())
		}
		if l.Unsent.Any() {
			late()
		}
	})
}

// Chunk writes a part of a long line; more says that the line goes on.
func (l *Link) Chunk(b []byte, more bool) error {
	l.streaming.Store(true)
	defer l.streaming.Store(false)
	l.moved.Add(1)
	return l.In.Chunk(b, more)
}

// linkInput is the server's input, and keeps the lines that do not get through.
type linkInput struct{ l *Link }

// Write implements io.Writer.
func (w linkInput) Write(b []byte) (int, error) {
	n, err := w.l.Gate.Write(b)
	if err == nil {
		return n, nil
	}
	w.l.broken.Store(true)
	if !w.l.streaming.Load() {
		w.l.Unsent.AddRest(b, n)
	}
	return n, err
}

// Take implements wire.MessageTaker.
func (w linkInput) Take(m *wire.Message) bool { return w.l.Gate.Take(m) }

// TryWrite implements wire.TryWriter.
func (w linkInput) TryWrite(b []byte) (written bool, err error) {
	if written, err = w.l.Gate.TryWrite(b); err != nil {
		w.l.broken.Store(true)
		w.l.Unsent.Add(b)
	}
	return written, err
}

// Leftover returns the lines that no server has read, in order, and until when they may
// wait. The caller sees to it that nothing else is written.
func (l *Link) Leftover(hold time.Duration) (lines []byte, deadline time.Time) {
	l.In.Flush()
	kept, deadline := l.Gate.TakeKept()
	if len(kept) == 0 {
		deadline = time.Now().Add(hold)
	}
	return slices.Concat(append([][]byte{kept}, l.Unsent.Sure()...)...), deadline
}

// endTime is how long the output of a server that has closed its input may take to end.
// Until then that may be its death, and what it did not read is for the next server.
const endTime = time.Second

// A returner is a Server that can say which lines it has taken and the server has not.
type returner interface{ Returned() []byte }

// Returned returns those lines, of requests alone. They are older than Leftover.
func (l *Link) Returned() []byte {
	if server := l.server.Load(); server != nil {
		if r, ok := (*server).(returner); ok {
			return r.Returned()
		}
	}
	return nil
}

// MayEnd reports whether the server, which takes no more input, may be about to end. late
// is called if it does not.
func (l *Link) MayEnd(late func()) bool {
	if l.Unsent.Bytes() > l.o.Limit || l.late.Load() && !l.stopping.Load() {
		return false
	}
	l.awaitEnd.Do(func() {
		time.AfterFunc(endTime, func() {
			l.late.Store(true)
			late()
		})
	})
	return true
}

// Widen makes way for a long line to the server.
func (l *Link) Widen() {
	if in := l.stdin(); in != nil {
		flow.Widen(in)
	}
}

// CloseInput tells the server to leave.
func (l *Link) CloseInput() {
	if in := l.stdin(); in != nil {
		in.Close()
	}
}

// stop ends the server and returns how it ended; for a link without one, how the one
// before it did.
func (l *Link) stop() Ending {
	server := l.server.Load()
	if server == nil {
		return l.before
	}
	l.stopping.Store(true)
	(*server).Stop()
	return NewEnding((*server).Wait())
}

// End ends the server and waits for the end of its output, but once the server is gone
// no longer than drain: a process of somebody else's may hold the pipe open, or the
// client may not read. It returns when that time is over, and how the server ended, or
// the one before it.
func (l *Link) End(drain time.Duration) (deadline time.Time, how error) {
	ending := l.stop()
	deadline = time.Now().Add(drain)
	if !l.Gate.IsOpen() {
		l.Gate.Close() // who writes waits no longer
	}
	if l.server.Load() != nil {
		tasks.RunUntil(deadline, func() { <-l.ended })
	}
	return deadline, ending.Err()
}
