package front

import (
	"bytes"

	"github.com/attache-mcp/attache/internal/kept"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/front/internal/rename"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/internal/inanswer"
	"github.com/attache-mcp/attache/proxy/wire"
)

// maxPending is how many bytes of messages may wait for a stream. Offer has room for all of them on a new stream.
const maxPending = 256 << 10

// An output sends the lines that a relay writes to its client to their streams. The relay calls it
// from one goroutine at a time. While a client does not read and its stream is full, Push blocks that
// goroutine, and with it the server and the other streams of the session, as a full pipe does on stdio. That ends
// when the write to the client times out: see answer.WriteTime.
type output struct {
	s    *session
	m    *wire.Message // for line; nil before the first, since most messages come to Take
	long *longLine     // not nil while a line comes in parts
}

// Write implements io.Writer. Only a line over the hold limit comes in several writes.
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

// line handles a whole line.
func (o *output) line(line []byte) {
	if o.m == nil {
		o.m = new(wire.Message)
	}
	o.m.Reset(wire.Server, line)
	o.Take(o.m)
}

// Take implements wire.MessageTaker: it sends a message to its stream.
func (o *output) Take(m *wire.Message) bool {
	switch {
	case m.Kind() == wire.Unreadable && !m.LookEnvelope():
		// The server's noise, which is forwarded on stdio. A client here would end at it.
	case m.Kind() == wire.Batch:
		o.batch(m)
	case m.Kind().IsReply():
		o.reply(m)
	case o.s.key != "" && m.MethodIs("notifications/cancelled"): // the end of a subscription
		o.s.cancelled(callid.Text(m.Get("params", "requestId").Raw), "server")
	default:
		// The client may answer as soon as it has the request, so its id is noted before.
		o.s.noteRequest(m)
		t, name := o.s.streamFor(m)
		if name != nil {
			m = name.Restore(m)
		}
		o.s.pass(t, m.Frame())
	}
	return true
}

// noteRequest records the id of a request of the server before the client can answer it. A reply to any other id is
// dropped: see deliver.
func (s *session) noteRequest(m *wire.Message) {
	if id := m.ID(); m.Kind() == wire.Request && id != nil {
		s.serverRequests.Add(id)
	}
}

// awaitsReply reports whether the server waits for this reply of the client, and removes its id from
// those awaited. A reply with the id null may belong to any request. Some peers write a number as a
// string, or a string as a number.
func (s *session) awaitsReply(reply *wire.Message) bool {
	id := reply.Get("id")
	if id.IsNull() || len(id.Raw) == 0 || s.serverRequests.Take(id.Raw) {
		return true
	}
	if !id.IsString() {
		return s.serverRequests.Take(wire.Quote(string(id.Raw)))
	}
	text := id.Text()
	return text != "" && s.serverRequests.Take([]byte(text))
}

// reply sends a reply to the call that waits for it. Nothing waits for the reply to a cancelled
// request.
func (o *output) reply(m *wire.Message) {
	s := o.s
	raw := m.ID()
	// ID returns strings and integers alone. The id may be a fraction, or null.
	if raw == nil {
		raw = m.Get("id").Raw
	}
	s.mu.Lock()
	c := s.callLocked(raw)
	if c == nil {
		s.abandoned.Settle(callid.Text(raw))
		s.mu.Unlock()
		if len(raw) == 0 || string(raw) == "null" {
			t, _ := s.streamFor(m)
			s.pass(t, m.Frame()) // only the client may know which request it answers
		} else {
			s.log.Debug("a reply that no request waits for was dropped")
		}
		return
	}
	if c.Initialize {
		s.version = kept.Text(m.Get("result", "protocolVersion").Text())
	}
	if c.Discovers && s.key != "" && m.Kind() == wire.Error && !s.closed {
		s.refused++
		s.timer.Reset(0) // see expire
	}
	// The rest is done without s.mu, because Push may block. Nobody else finds the call any more.
	closes := s.dropLocked(c)
	s.mu.Unlock()
	if s.key != "" {
		s.replied.Add(c.Raw)
		s.f.keys.Learn(s.who.ID, s.key, m)
	}
	if c.name != nil {
		m = c.name.Restore(m)
	}
	if c.onReply != nil { // before the client has the reply
		c.onReply(m)
		s.entry.Save()
	}
	// Before the client has the list: its next call must have the headers that the list demands.
	if c.listsTools {
		s.params.Learn(m.Root())
	}
	// The relay uses the memory of m again, so the stream gets a lease of it, or a copy.
	line, lease := m.KeepLine()
	c.stream.Push(outbox.Item{Data: line[:len(m.Frame())], Lease: lease, Final: closes, Failed: m.Kind() == wire.Error, Beside: m.Beside}, closes)
}

// batch sends an array of replies to the calls that wait for them. If the requests came in one array
// too, it sends the array unchanged, as revisions with arrays allow. Otherwise each member goes its own way, as
// if it had come in a line of its own: a response has only the messages that belong to its request.
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
				s.serverRequests.Add(id)
			}
		}
	}
	s.mu.Unlock()
	if first != nil && one {
		first.Push(outbox.Item{Data: bytes.Clone(m.Frame()), Final: closes}, closes)
		return
	}
	for e := range m.Root().Elements() {
		part := output{s: s}
		part.line(append(bytes.Clone(e.Raw), '\n'))
	}
}

// callLocked returns the call that a reply with the raw id answers, nil if there is none. The relay
// refuses a request whose id is a fraction with the id null. The caller holds s.mu.
func (s *session) callLocked(raw []byte) *call {
	if string(raw) != "null" {
		return callid.Lookup(s.calls, raw)
	}
	var first *call
	for _, c := range s.calls {
		if callid.IsFraction(c.Raw) && (first == nil || c.number < first.number) {
			first = c
		}
	}
	return first
}

// streamFor returns the stream for a message that is not a reply, or nil, and the name of the call that
// the message names, nil if that was not renamed. A message goes to one stream only (specification,
// basic/transports): the first that exists of
//   - the stream of the call that the progress token or the subscription id names
//   - the stream of the call whose answer from a remote server contained the message
//   - the stream of the only call in flight
//   - the newest GET stream
func (s *session) streamFor(m *wire.Message) (*stream, *rename.Name) {
	var token, listen wire.Value
	answered := inanswer.Of(m.Beside)
	switch params := m.Get("params"); {
	case m.MethodIs("notifications/progress"):
		token = params.Get("progressToken")
	case m.Kind() == wire.Notification:
		listen = params.Get("_meta", rename.SubscriptionID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range []*call{callid.Lookup(s.tokens, token.Raw), callid.Lookup(s.calls, listen.Raw)} {
		if c != nil && c.stream.Open() {
			return c.stream, c.name
		}
	}
	if c := callid.Lookup(s.calls, answered); c != nil && c.stream.Open() {
		return c.stream, nil
	}
	if s.key != "" && (answered != nil || token.Exists() || listen.Exists()) {
		return nil, nil // its call is over, and another call in flight may be another client's
	}
	// Without a better hint, a message during the only call is most likely about that call. A list
	// change is about none.
	if only := s.onlyCallLocked(); only != nil && !isListChange(m) {
		return only, nil
	}
	if s.key != "" {
		return nil, nil // in revision 2026-07-28 every message on a stream belongs to its request
	}
	if t := s.getLocked(); t != nil {
		return t, nil
	}
	// A client without a GET stream reads the streams of its calls alone.
	return s.anyCallLocked(), nil
}

// onlyCallLocked returns the stream of the calls in flight if they share one, else nil. Subscriptions do not count:
// they accept only messages that name them. The caller holds s.mu, as for the next two functions.
func (s *session) onlyCallLocked() (only *stream) {
	for _, c := range s.calls {
		if c.subscribes || !c.stream.Attached() || c.stream == only {
			continue
		}
		if only != nil {
			return nil
		}
		only = c.stream
	}
	return only
}

// anyCallLocked returns the stream of the latest call that may get more than its reply, nil if there is none.
func (s *session) anyCallLocked() *stream {
	var newest *stream
	number := uint64(0) // the first call has 1
	for _, c := range s.calls {
		if !c.subscribes && c.stream.Attached() && c.number > number {
			newest, number = c.stream, c.number
		}
	}
	return newest
}

// getLocked returns the newest GET stream that is still read, nil if there is none.
func (s *session) getLocked() *stream {
	for i := len(s.gets) - 1; i >= 0; i-- {
		if s.gets[i].Attached() {
			return s.gets[i]
		}
	}
	return nil
}

// pass sends a copy of a message that is not a reply to t. If t is nil or does not accept it, pass
// keeps the copy for the next stream. The caller does not hold s.mu, so t may have ended since streamFor.
func (s *session) pass(t *stream, frame []byte) {
	if t != nil && t.PushEvent(frame) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	// Without a handshake the next stream may be another client's, so nothing waits for it.
	if s.key != "" || s.pendingBytes+len(frame) > maxPending {
		if !s.dropped {
			s.dropped = true
			s.log.Warn("a message of the server's was dropped, and others may be: the client has no stream open that could take it")
		}
		return
	}
	s.pending = append(s.pending, bytes.Clone(frame))
	s.pendingBytes += len(frame)
}

// deliverToCallLocked sends the pending messages to t, the stream of a call, unless a GET stream is there for
// them. A client without a GET stream gets them with its next call: one of them may be a request of the server
// that waits for its answer. The caller holds s.mu.
func (s *session) deliverToCallLocked(t *outbox.Stream) {
	if s.getLocked() == nil {
		s.deliverPendingLocked(t)
	}
}

// deliverPendingLocked sends the pending messages to t, in order. Messages that do not fit wait for the next
// stream. The caller holds s.mu.
func (s *session) deliverPendingLocked(t *outbox.Stream) {
	for i, frame := range s.pending {
		// Push may block, and mu is locked.
		if !t.Offer(outbox.Item{Data: frame}) {
			s.pending = s.pending[i:]
			return
		}
		s.pendingBytes -= len(frame)
	}
	s.pending = nil
}

// isListChange reports whether m says that a list or resource has changed. Such a notification does
// not belong to a call.
func isListChange(m *wire.Message) bool {
	return m.MethodIs("notifications/tools/list_changed") || m.MethodIs("notifications/prompts/list_changed") ||
		m.MethodIs("notifications/resources/list_changed") || m.MethodIs("notifications/resources/updated")
}
