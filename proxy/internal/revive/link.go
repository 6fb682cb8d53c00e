package revive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Server is a started server: the methods of proxy.Upstream.
type Server interface {
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Stop()
	Wait() error
}

// A Link has the state of one run of the server, from before its start until its output
// was read to the end. A session has one link at a time. Make one with NewLink.
type Link struct {
	In     *wire.Writer  // to the server's stdin, through Gate
	Gate   *Gate         // shut until the server is ready
	Unsent Lines         // lines that could not be written
	Unread callid.Unread // ids of cancelled calls whose replies must be held

	o         LinkOptions
	server    atomic.Pointer[Server] // nil before it is started
	before    Ending                 // of the previous server
	failed    atomic.Pointer[byte]   // the first byte of the write that failed; nil while none has
	streaming atomic.Bool            // a long line is being written in chunks
	stopping  atomic.Bool            // stop was called, and another server may follow
	moved     atomic.Int64           // lines and chunks that were written
	reads     atomic.Int64           // reads of the server's output, if LinkOptions.Count is set
	started   time.Time              // when the server was started; used by its starter only, like ready
	ready     time.Time              // when the server was ready
	ended     chan struct{}          // closed when the server's output was read to its end

	late     atomic.Bool // the server's output did not end soon after its input
	awaitEnd sync.Once   // starts the timer that sets late
}

// LinkOptions are the options of a link.
type LinkOptions struct {
	Count   bool              // count the reads of the server's output
	Limit   int               // how many bytes wait for the server before a writer blocks
	Hold    time.Duration     // how long a line waits for the server
	Expired func(*Link)       // called when a line has waited that long
	Watch   func(line []byte) // called with every line that is written; may be nil
}

// NewLink returns a link for a server that was not started yet. before describes how the
// previous server ended.
func NewLink(o LinkOptions, before Ending) *Link {
	l := &Link{o: o, before: before, ended: make(chan struct{})}
	l.Gate = newGate(o.Limit, o.Hold, l)
	l.In = wire.NewWriter(l.Gate)
	return l
}

// Connect sets the server of the link.
func (l *Link) Connect(server Server) {
	l.started = time.Now()
	// A replay knows when the server of the recording was started.
	if s, ok := server.(interface{ StartedAt() time.Time }); ok {
		l.started = s.StartedAt()
	}
	l.server.Store(&server)
}

// Started reports whether the link has a server.
func (l *Link) Started() bool { return l.server.Load() != nil }

// Read starts passing the lines of the server's output to a LineTaker, until its end. The server
// itself calls the LineTaker if it can, otherwise a new goroutine reads the output.
func (l *Link) Read(to LineTaker) {
	server, lines := *l.server.Load(), linkOutput{to, l}
	if p, ok := server.(wire.Pusher); ok {
		p.Push(lines)
		return
	}
	go func() {
		defer lines.End() // also after an error of the client: the output is not read any further
		_ = lines.Lines(nil, server.Stdout())
	}()
}

// A LineTaker receives the lines of a server. It is a wire.Sink without End.
type LineTaker interface {
	Line(m *wire.Message, more bool) error
	Lines(begun []byte, from io.Reader) error
}

// linkOutput passes the server's output to a LineTaker. It counts the reads and detects the end.
type linkOutput struct {
	to LineTaker
	l  *Link
}

// Line implements wire.Sink.
func (s linkOutput) Line(m *wire.Message, more bool) error {
	if s.l.o.Count {
		s.l.reads.Add(1)
	}
	return s.to.Line(m, more)
}

// Lines implements wire.Sink.
func (s linkOutput) Lines(begun []byte, from io.Reader) error {
	if s.l.o.Count {
		from = countingReader{from, &s.l.reads}
	}
	return s.to.Lines(begun, from)
}

// End implements wire.Sink.
func (s linkOutput) End() { close(s.l.ended) }

// A countingReader counts the reads of a server's output that return something.
type countingReader struct {
	io.Reader
	n *atomic.Int64
}

// Read implements io.Reader.
func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 {
		r.n.Add(1)
	}
	return n, err
}

// SyscallConn implements syscall.Conn for a server with a pipe, which flow.Widen can then enlarge.
func (r countingReader) SyscallConn() (syscall.RawConn, error) {
	if c, ok := r.Reader.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Open lets frames pass to a server that needs no messages of attache first.
func (l *Link) Open() {
	l.ready = time.Now()
	l.Gate.Open(l.stdin(), nil)
}

// StartLine returns the line of a recording for the server of l, which replaced another one.
func (l *Link) StartLine() []byte {
	return fmt.Appendf(nil, `{"time":%q}`+"\n", l.started.UTC().Format(time.RFC3339))
}

// Ended returns a channel that is closed when the server's output was read to its end.
func (l *Link) Ended() <-chan struct{} { return l.ended }

// Before returns how the previous server ended.
func (l *Link) Before() Ending { return l.before }

// Moved returns how many lines and chunks were written, 0 for a nil link.
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

// Write writes a message to the server. If that fails, it adds the line to Unsent.
//
// Once a write has failed, the wire.Writer returns the error for each line and writes none. The lines
// of the write that failed are in Unsent already, by fail: usually lines gathered before this one, but
// this one itself if it is long.
func (l *Link) Write(m *wire.Message) {
	broken := l.failed.Load() != nil
	if !l.keeps(m.Line(), true) && l.In.Write(m) != nil && (broken || !l.failedAt(m.Line())) {
		l.Unsent.Add(m.Line())
	}
	l.moved.Add(1)
}

// failedAt reports whether the write that failed began with this line. The wire.Writer copies short
// lines to its buffer, and writes long ones directly; then fail has already added it to Unsent.
func (l *Link) failedAt(line []byte) bool { return len(line) > 0 && l.failed.Load() == &line[0] }

// keeps passes a line to LinkOptions.Watch, if set. If the server is not ready, it puts the
// line in the gate instead and reports true; Watch then gets the line when it is written.
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

// show passes lines to LinkOptions.Watch, if set.
func (l *Link) show(lines []byte) {
	if l.o.Watch == nil {
		return
	}
	for line := range bytes.Lines(lines) {
		l.o.Watch(line)
	}
}

// Queue queues a message of attache's own. It calls late if lines could not be written by
// the time the message was due: the message then counts as not sent, and a reply that
// comes nevertheless is dropped. If the message was in the write that failed, it is in Unsent
// twice, which does no harm: no message of attache's own goes to the next server.
func (l *Link) Queue(m *wire.Message, late func()) {
	if l.keeps(m.Line(), false) {
		return
	}
	l.In.Queue(m.Line(), func(error) {
		if l.failed.Load() != nil {
			l.Unsent.Add(m.Line())
		}
		if l.Unsent.Any() {
			late()
		}
	})
}

// Chunk writes a part of a long line; more reports that other parts follow.
func (l *Link) Chunk(b []byte, more bool) error {
	l.In.Flush() // if the lines before this one cannot be written, fail must keep them
	l.streaming.Store(true)
	defer l.streaming.Store(false)
	l.moved.Add(1)
	return l.In.Chunk(b, more)
}

// expire is called when a line has waited for the server as long as it may.
func (l *Link) expire() { l.o.Expired(l) }

// fail adds the lines of b, of which only n bytes could be written, to Unsent.
func (l *Link) fail(b []byte, n int) {
	l.failed.Store(&b[0])
	// A part of a long line is of no use to the next server, which has not got the parts before it.
	if !l.streaming.Load() {
		l.Unsent.AddRest(b, n)
	}
}

// Leftover returns the lines that no server has read, in order, and until when they may
// wait. The caller must make sure that nothing else is written.
func (l *Link) Leftover(hold time.Duration) (lines []byte, deadline time.Time) {
	l.In.Flush() // the gate is closed, so this moves what was gathered to Unsent
	kept, deadline := l.Gate.TakeKept()
	if len(kept) == 0 {
		deadline = time.Now().Add(hold)
	}
	return append(kept, l.Unsent.Sure()...), deadline
}

// endTime is how long after a server has closed its input its output may end. Until then
// the server may be about to end, and the next server gets the lines that it did not read.
const endTime = time.Second

// Returned returns the lines of requests that were written to the Server, but that did not
// reach the server behind it, if the Server can report them. They are older than those of
// Leftover.
func (l *Link) Returned() []byte {
	if server := l.server.Load(); server != nil {
		if r, ok := (*server).(interface{ Returned() []byte }); ok {
			return r.Returned()
		}
	}
	return nil
}

// MayEnd reports whether the server, which has closed its input, may be about to end. It
// calls late if the server does not end.
func (l *Link) MayEnd(late func()) bool {
	// A server that is being stopped ends in any case, so its lines need not be answered.
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

// Widen makes the pipe to the server larger for a long line.
func (l *Link) Widen() {
	if in := l.stdin(); in != nil {
		flow.Widen(in)
	}
}

// CloseInput closes the server's input, which asks it to end.
func (l *Link) CloseInput() {
	if in := l.stdin(); in != nil {
		in.Close()
	}
}

// stop ends the server and returns how it ended. For a link without a server it returns how
// the previous server ended.
func (l *Link) stop() Ending {
	server := l.server.Load()
	if server == nil {
		return l.before
	}
	l.stopping.Store(true)
	(*server).Stop()
	return NewEnding((*server).Wait())
}

// End ends the server and waits for the end of its output. It waits no longer than drain
// after the end of the server, because another process may hold the pipe open, or the client
// may not read. It returns when that time is over, and the error of the server, or of the
// previous one if there is none.
func (l *Link) End(drain time.Duration) (deadline time.Time, err error) {
	ending := l.stop()
	deadline = time.Now().Add(drain)
	if !l.Gate.IsOpen() {
		l.Gate.Close() // unblocks writers
	}
	if l.server.Load() != nil {
		tasks.Await(l.ended, time.Until(deadline), nil)
	}
	return deadline, ending.Err()
}
