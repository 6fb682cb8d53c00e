package front

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// maxPending is how many bytes of messages wait for a stream that takes them.
const maxPending = 256 << 10

// An output takes the lines that a relay writes to its client to the streams they are
// for. The relay calls it from one goroutine at a time.
type output struct {
	s    *session
	m    wire.Message
	long *longLine // not nil within a line that comes in parts
}

// Write implements io.Writer. A line that is not whole is one over the hold limit: the
// relay writes others in one piece.
func (o *output) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n')
		switch {
		case end >= 0 && o.long == nil:
			o.line(b[:end+1])
		case end >= 0:
			o.longPart(b[:end], true)
		default:
			o.longPart(b, false)
			return n, nil
		}
		b = b[end+1:]
	}
	return n, nil
}

// line takes a whole line where it belongs.
func (o *output) line(line []byte) {
	o.m.Reset(wire.Server, line)
	o.Take(&o.m)
}

// Take implements wire.MessageTaker: it takes a message where it belongs.
func (o *output) Take(m *wire.Message) bool {
	switch {
	case m.Kind() == wire.Unreadable && !m.LookEnvelope():
		// Of a server whose noise is passed on: a client here would end.
	case m.Kind() == wire.Batch:
		o.batch(m)
	case m.Kind().IsReply():
		o.reply(m)
	default:
		o.s.asks(m)
		o.s.pass(o.s.streamFor(m), m.Frame())
	}
	return true
}

// asks notes a request of the server's before the client can answer it.
func (s *session) asks(m *wire.Message) {
	if id := m.ID(); m.Kind() == wire.Request && id != nil {
		s.asked.Add(id)
	}
}

// expects reports whether the server waits for a reply of the client's, and notes that it has
// come. A reply to null may be to any request. Some servers take a number for the text of it,
// and the other way round.
func (s *session) expects(reply *wire.Message) bool {
	id := reply.Get("id")
	if id.IsNull() || len(id.Raw) == 0 || s.asked.Take(id.Raw) {
		return true
	}
	if !id.IsString() {
		return s.asked.Take(wire.Quote(string(id.Raw)))
	}
	text := id.Text()
	return text != "" && s.asked.Take([]byte(text))
}

// reply takes a reply to the request that waits for it. Nobody waits for the reply to a
// cancelled request.
func (o *output) reply(m *wire.Message) {
	s := o.s
	raw := m.ID()
	if raw == nil {
		raw = m.Get("id").Raw
	}
	s.mu.Lock()
	c := s.callLocked(raw)
	if c == nil {
		delete(s.abandoned, callKey(raw))
		s.mu.Unlock()
		if len(raw) == 0 || string(raw) == "null" {
			s.pass(s.streamFor(m), m.Frame()) // whose it is only the client may know
		} else {
			s.log.Debug("a reply that no request waits for was dropped")
		}
		return
	}
	if c.initialize {
		s.version = m.Get("result", "protocolVersion").Text()
	}
	closes := s.dropLocked(c)
	s.mu.Unlock()
	if c.recorded != nil { // before the client knows of it
		c.recorded(m)
		s.kept.Save()
	}
	if c.listsTools {
		s.params.Learn(m.Root())
	}
	line, lease := m.KeepLine()
	c.stream.push(item{data: line[:len(m.Frame())], lease: lease, final: closes, failed: m.Kind() == wire.Error, beside: m.Beside}, closes)
}

// batch takes an array of replies to the requests that wait for them: as it is, if they
// came in one array too.
func (o *output) batch(m *wire.Message) {
	s := o.s
	var first *stream
	one, closes := true, false
	s.mu.Lock()
	for e := range m.Root().Elements() {
		if c := s.callLocked(e.Get("id").Raw); c != nil && !e.Get("method").Exists() {
			if first == nil {
				first = c.stream
			}
			one = one && c.stream == first
		}
	}
	if first != nil && one {
		for e := range m.Root().Elements() {
			id, asks := e.Get("id").Raw, e.Get("method").Exists()
			if c := s.callLocked(id); c != nil && !asks && c.stream == first {
				closes = s.dropLocked(c)
			} else if asks && len(id) > 0 {
				s.asked.Add(id)
			}
		}
	}
	s.mu.Unlock()
	if first != nil && one {
		first.push(item{data: bytes.Clone(m.Frame()), final: closes}, closes)
		return
	}
	for e := range m.Root().Elements() {
		part := output{s: s}
		part.line(append(bytes.Clone(e.Raw), '\n'))
	}
}

// callLocked returns the call that a reply with the raw id answers, nil if there is
// none. The relay refuses an id that is no integer with null. The caller holds s.mu.
func (s *session) callLocked(raw []byte) *call {
	if string(raw) != "null" {
		return find(s.calls, raw)
	}
	var first *call
	for _, c := range s.calls {
		if callid.IsFraction(c.raw) && (first == nil || c.number < first.number) {
			first = c
		}
	}
	return first
}

// streamFor returns the stream of what is not a reply: that of the call it names by a
// progress token or as its subscription, of the only call in flight, or the newest
// GET; nil for none. It goes on one of them alone (specification, basic/transports).
func (s *session) streamFor(m *wire.Message) *stream {
	var token, listen wire.Value
	switch params := m.Get("params"); {
	case m.MethodIs("notifications/progress"):
		token = params.Get("progressToken")
	case m.Kind() == wire.Notification:
		listen = params.Get("_meta", "io.modelcontextprotocol/subscriptionId")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := find(s.tokens, token.Raw); c != nil && c.stream.attached() {
		return c.stream
	}
	if c := find(s.calls, listen.Raw); c != nil && c.stream.attached() {
		return c.stream
	}
	if only := s.onlyCallLocked(); only != nil && !isListChange(m) {
		return only
	}
	if s.key != "" {
		return nil // in revision 2026-07-28 only what belongs to a request may come with it
	}
	if t := s.getLocked(); t != nil {
		return t
	}
	return s.anyCallLocked()
}

// isListChange reports whether m tells of a list or resource, which no call brings about.
func isListChange(m *wire.Message) bool {
	return m.MethodIs("notifications/tools/list_changed") || m.MethodIs("notifications/prompts/list_changed") ||
		m.MethodIs("notifications/resources/list_changed") || m.MethodIs("notifications/resources/updated")
}

// onlyCallLocked returns the stream of the one call in flight that has one.
func (s *session) onlyCallLocked() (only *stream) {
	for _, c := range s.calls {
		if c.listens || !c.stream.attached() || c.stream == only {
			continue
		}
		if only != nil {
			return nil
		}
		only = c.stream
	}
	return only
}

// anyCallLocked returns the stream of the call that came last.
func (s *session) anyCallLocked() *stream {
	var newest *stream
	number := uint64(0) // the first call has 1
	for _, c := range s.calls {
		if !c.listens && c.stream.attached() && c.number > number {
			newest, number = c.stream, c.number
		}
	}
	return newest
}

// getLocked returns the newest GET stream.
func (s *session) getLocked() *stream {
	for i := len(s.gets) - 1; i >= 0; i-- {
		if s.gets[i].attached() {
			return s.gets[i]
		}
	}
	return nil
}

// pass gives a copy of a message that is not a reply to a stream, or keeps it for the next one.
func (s *session) pass(t *stream, frame []byte) {
	if t != nil && t.pushEvent(frame) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.key != "" || s.waiting+len(frame) > maxPending {
		if !s.dropped {
			s.dropped = true
			s.log.Warn("a message of the server's was dropped, and others may be: the client has no stream open that could take it")
		}
		return
	}
	s.pending = append(s.pending, bytes.Clone(frame))
	s.waiting += len(frame)
}

// deliverPendingLocked gives what has waited to a stream that takes it. The caller holds
// s.mu.
func (s *session) deliverPendingLocked(t *stream) {
	for i, frame := range s.pending {
		if !t.offer(item{data: frame}) {
			s.pending = s.pending[i:]
			return
		}
		s.waiting -= len(frame)
	}
	s.pending = nil
}
