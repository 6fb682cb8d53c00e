package front

import (
	"github.com/attache-mcp/attache/proxy/front/internal/piece"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A longLine is a line over the hold limit, which comes in parts and is not held.
type longLine struct {
	envelope wire.Envelope
	stream   *stream // where it goes; nil until that is known
	call     *call   // whose reply it is, or seems to be; nil for none
	guessed  bool    // call is a guess: the id, or what kind of message it is, has not come yet
	final    bool    // call is the only one on the stream
	lost     bool    // it goes nowhere
}

// longPart takes a part of a long line on its way. Most servers write the id in front of
// the result. Where it comes behind, the line goes to the one call in flight, as an event
// if the client takes events: another may follow if it was not the reply. If there are
// several calls the line cannot be held until it is known whose it is, and the call it
// turns out to answer gets an error.
func (o *output) longPart(b []byte, end bool) {
	if o.long == nil {
		o.long = &longLine{}
	}
	l := o.long
	l.envelope.Feed(b)
	if l.stream == nil && !l.lost {
		o.aim(l)
	}
	if end {
		o.s.asks(wire.Oversize(wire.Server, &l.envelope))
	}
	for more := l.stream != nil; more; {
		i := item{part: middle, final: l.final}
		i.data, b = piece.Cut(b)
		if more = len(b) > 0; !more && end && l.whole() {
			i.part = last
		}
		l.stream.push(i, false)
	}
	if end {
		o.long = nil
		o.endLong(l)
	}
}

// aim finds out where a long line goes.
func (o *output) aim(l *longLine) {
	s := o.s
	m := wire.Oversize(wire.Server, &l.envelope)
	if kind := m.Kind(); kind == wire.Request || kind == wire.Notification {
		l.stream = s.streamFor(m)
		l.lost = l.stream == nil
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.guessed = m.ID() == nil || !m.Kind().IsReply()
	if m.ID() != nil {
		l.call = s.callLocked(m.ID())
	} else if len(s.calls) == 1 {
		for _, c := range s.calls {
			l.call = c
		}
	}
	if l.call == nil {
		l.lost = true
		return
	}
	l.stream, l.final = l.call.stream, !l.guessed && l.call.stream.calls == 1
}

// whole reports whether the client may see the end of the message. It must not see that of
// one that broke off, nor, where it takes a reply alone, that of another message.
func (l *longLine) whole() bool {
	return l.envelope.Complete() && (!l.guessed || l.stream.events || l.answers())
}

// answers reports whether the line was the reply to the call that it went to.
func (l *longLine) answers() bool {
	m := wire.Oversize(wire.Server, &l.envelope)
	return m.Kind().IsReply() && callKey(m.ID()) == l.call.id
}

// endLong settles the calls that a long line was, or was taken for, the reply to.
func (o *output) endLong(l *longLine) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := l.call; c != nil && s.calls[c.id] == c && (l.answers() || !l.whole()) {
		if s.dropLocked(c) {
			l.stream.close()
		}
		return
	}
	m := wire.Oversize(wire.Server, &l.envelope)
	if c := s.callLocked(m.ID()); c != nil && m.Kind().IsReply() {
		s.answerLocked(c, "the reply is longer than the proxy may hold, and its id stands behind the result: have the server write the id first")
		return
	}
	if m.Kind().IsReply() {
		delete(s.abandoned, callKey(m.ID()))
	}
	if l.lost {
		s.log.Warn("a message of the server's over the hold limit was dropped: no stream takes it")
	}
}
