package front

import (
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/internal/callid"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A longLine is a line over the hold limit. It comes in parts and is not held. The envelope scans each part, so
// more of the line is known with each part. Only output uses it.
type longLine struct {
	envelope wire.Envelope
	stream   *stream // its destination; nil until it is known
	call     *call   // the call that it answers, or seems to answer; nil for none
	guessed  bool    // call is a guess, because the id or the kind of the message is not known yet
	alone    bool    // call is the only one on the stream
	dropped  bool    // no stream accepts it
}

// longPart passes on a part of a long line. Most servers write the id before the result. If the id
// comes after it and one call but subscriptions is in flight, the line goes to that call: as an event if
// the client accepts events, because another message can follow if this one was not the reply. If several
// calls are in flight, the line is dropped, because it cannot be held until the id is known. The call
// that it answered then gets an error.
func (o *output) longPart(b []byte, end bool) {
	if o.long == nil {
		o.long = &longLine{}
	}
	l := o.long
	l.envelope.Feed(b)
	if l.stream == nil && !l.dropped {
		o.chooseStream(l)
		if c := l.call; c != nil && c.name != nil && !c.name.RestoreStart(&b) {
			l.call, l.stream, l.dropped = nil, nil, true
		}
	}
	if end {
		o.s.noteRequest(l.message())
	}
	for more := l.stream != nil; more; {
		// The parts are copies, because the relay uses its buffer again. Push blocks while the
		// client does not read, so they are few.
		var i outbox.Item
		i, b = outbox.Cut(b)
		if more = len(b) > 0; !more && end && l.complete() {
			i.Part = outbox.Last
		}
		i.Final = l.alone && (!l.guessed || i.Part == outbox.Last && l.answers())
		l.stream.Push(i, false)
	}
	if end {
		o.long = nil
		o.endLong(l)
	}
}

// chooseStream sets the destination of a long line. The first part must contain the destination, because an
// earlier part would have to be held.
func (o *output) chooseStream(l *longLine) {
	s, m := o.s, l.message()
	if kind := m.Kind(); kind == wire.Request || kind == wire.Notification {
		l.stream, _ = s.streamFor(m)
		l.dropped = l.stream == nil
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// With the id, but before the kind is known, the line may still be a request of the server with
	// the id of a call.
	l.guessed = m.ID() == nil || !m.Kind().IsReply()
	if m.ID() != nil {
		l.call = s.callLocked(m.ID())
	} else if running := s.runningLocked(); len(running) == 1 {
		l.call = running[0]
	}
	if l.call == nil {
		l.dropped = true
		return
	}
	l.stream, l.alone = l.call.stream, l.call.stream.calls == 1
}

// message returns the known members of the line as a message.
func (l *longLine) message() *wire.Message { return wire.Oversize(wire.Server, &l.envelope) }

// complete reports whether the client may see the end of the message. It must not see the end of a
// truncated message, nor, if it accepts only a reply, the end of any other message.
func (l *longLine) complete() bool {
	return l.envelope.Complete() && (!l.guessed || l.stream.Events() || l.answers())
}

// answers reports whether the line was the reply to l.call.
func (l *longLine) answers() bool {
	m := l.message()
	return m.Kind().IsReply() && callid.Text(m.ID()) == l.call.id
}

// endLong removes the call that a long line answered. It also removes the call that the line was sent
// to, unless that can still get its reply: the line was another message, which the client has whole.
func (o *output) endLong(l *longLine) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := l.call; c != nil && s.calls[c.id] == c && (l.answers() || !l.complete()) {
		if s.key != "" { // as for a short reply: see toCancel
			s.replied.Add(c.Raw)
		}
		if s.dropLocked(c) {
			l.stream.Close()
		}
		return
	}
	m := l.message()
	if c := s.callLocked(m.ID()); c != nil && m.Kind().IsReply() {
		s.answerLocked(c, "the reply is longer than the proxy may hold, and its id comes after the result, so it is not known whose it is: increase limits.hold, or call again when no other call runs")
		return
	}
	if m.Kind().IsReply() {
		s.abandoned.Settle(callid.Text(m.ID()))
	}
	if l.dropped {
		s.log.Warn("a message of the server's over the hold limit was dropped: no stream takes it")
	}
}
