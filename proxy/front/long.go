package front

import (
	"bytes"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A longLine is a line over the hold limit, which comes in parts and is not held.
type longLine struct {
	envelope wire.Envelope
	stream   *stream // where it goes; nil until that is known
	call     *call   // whose reply it is; nil for none
	final    bool    // that call is the only one on the stream
	lost     bool    // it goes nowhere
}

// longPart takes a part of a long line on its way. Most servers write the id in front of
// the result. Where it comes behind, the line goes to the one call in flight; if there
// are several it cannot be held until it is known whose it is, and the call it turns out
// to answer gets an error.
func (o *output) longPart(b []byte, end bool) {
	if o.long == nil {
		o.long = &longLine{}
	}
	l := o.long
	l.envelope.Feed(b)
	if l.stream == nil && !l.lost {
		o.aim(l)
	}
	if l.stream != nil {
		p := middle
		if end && l.envelope.Complete() {
			p = last // of one that broke off the client must not see an end
		}
		l.stream.push(item{data: bytes.Clone(b), part: p, final: l.final}, false)
	}
	if end {
		o.long = nil
		o.endLong(l)
	}
}

// aim finds out where a long line goes.
func (o *output) aim(l *longLine) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := l.envelope.ID(); id != nil {
		l.call = s.callLocked(id)
	} else if len(s.calls) == 1 {
		for _, c := range s.calls {
			l.call = c
		}
	}
	if l.call == nil {
		l.lost = true
		return
	}
	l.stream, l.final = l.call.stream, l.call.stream.calls == 1
}

// endLong answers what a long line was the reply to.
func (o *output) endLong(l *longLine) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.call != nil && s.calls[l.call.id] == l.call:
		if s.dropLocked(l.call) {
			l.stream.close()
		}
	case l.lost && l.envelope.ID() != nil:
		if c := s.callLocked(l.envelope.ID()); c != nil {
			s.answerLocked(c, "the reply is longer than the proxy may hold, and its id stands behind the result: have the server write the id first")
		}
	case l.lost:
		s.f.log.Warn("a message of the server's over the hold limit was dropped: it answers no request", "session", s.label())
	}
}
