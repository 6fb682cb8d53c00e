package proxy

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/tasks"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A link is one life of the upstream: from its start until it is gone and its
// output has been read. What concerns that life alone is here, and not in the
// session. A session has at most one link at a time.
type link struct {
	s  *session
	up Upstream
	in *wire.Writer // to the upstream's stdin

	unsent unsentRequests // requests that could not be written
	unread callid.Unread  // ids of cancelled calls whose replies must be held
	moved  atomic.Int64   // lines and chunks written to the upstream
	ended  chan struct{}  // closed when the upstream's output has been read to its end
}

// newLink returns the link of an upstream that was started. pump then reads from it.
func newLink(s *session, up Upstream) *link {
	l := &link{s: s, up: up, ended: make(chan struct{})}
	l.in = wire.NewWriter(&serverIn{up.Stdin(), l})
	return l
}

// pump reads from the upstream until its end, or until the client takes no more.
func (l *link) pump() {
	defer close(l.ended)
	if err := l.s.readServer(l.up.Stdout()); err != nil {
		l.s.fail(err)
	}
	l.s.ended <- l
}

// end ends the upstream and waits for the end of its output, but once the
// upstream is gone no longer than until the deadline: a process of somebody
// else's may hold the pipe open, or the client may not read. how says how the
// upstream ended.
func (l *link) end() (deadline time.Time, how error) {
	l.up.Stop()
	deadline = time.Now().Add(drainTime)
	tasks.RunUntil(deadline, func() { <-l.ended })
	return deadline, l.up.Wait()
}

// write writes a frame to the upstream. That it cannot be written any more is no
// error of the session: see unsentRequests.
func (l *link) write(m *wire.Message) {
	l.s.watch(ServerIn, m.Line())
	if l.in.Write(m) != nil {
		l.unsent.addLines(m.Line())
	}
	l.moved.Add(1)
}

// widen makes way for a long line to the upstream.
func (l *link) widen() { flow.Widen(l.up.Stdin()) }

// readServer reads from an upstream until its end. The error is that of the
// client's side, or of a layer.
func (s *session) readServer(stdout io.Reader) error {
	r := wire.NewReader(stdout, s.o.Hold)
	r.OnLongLine(func() { flow.Widen(stdout, s.o.ClientOut) })
	for {
		line, more, err := r.Next()
		switch {
		case err != nil:
			return s.toClient.Flush()
		case more:
			err = s.streamFromServer(r, line)
		default:
			err = s.fromServer(line, !r.Buffered())
		}
		if err != nil {
			return err
		}
	}
}
