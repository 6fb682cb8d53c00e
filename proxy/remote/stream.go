package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/attache-mcp/attache/proxy/remote/internal/eventstream"
	"github.com/attache-mcp/attache/proxy/remote/internal/outbox"
)

type eventReader struct {
	x *exchange
	f outbox.Frame // of the current event; a stream and those that resume it share it
	n int          // events with data, by which readEvents and readMessages see progress
}

func (t *eventReader) Data(b []byte) { t.f.Put(b) }

func (t *eventReader) Event(name []byte) {
	if t.f.Size() == 0 { // such as a priming event, of which only id and retry count (SEP-1699)
		return
	}
	t.n++
	m := t.f.End()
	if len(name) > 0 && string(name) != "message" || m == nil {
		t.x.s.log.Debug("an event of the remote server is not a message", "event", elided(string(name)), "begins", elided(t.f.Beginning()))
		t.f.Reset()
		return
	}
	open := t.x.mayBeAnswered()
	if t.x.take(&t.f, m); open && !t.x.mayBeAnswered() {
		t.x.endLater()
	}
}

// resumeTries is how many times in a row resuming a stream may fail. There is no limit for a stream that
// the server ends cleanly: some servers make clients poll in this way (SEP-1699).
const resumeTries = 5

// readEvents reads an answer that is a stream. If the stream breaks and its events have ids, it is
// resumed after the last event. 2026-07-28 has no resumption: there the client sends the request again,
// with another id.
func (x *exchange) readEvents(body io.Reader) {
	t := &eventReader{x: x}
	t.f.Out = x.s.out
	p := eventstream.New(t)
	err := each(&t.f, body, p.Feed)
	t.lastEvent(p, err)
	// Each reason to stop: all requests have their answers; no event had an id; 2026-07-28; too many failures;
	// or the client, FirstByte or the end of the session has cancelled x. A request whose id cannot be read has
	// no entry in ids, so it gets what comes on the first stream only.
	for broken, polls := 0, 0; len(x.ids) > 0 && len(p.ID) > 0 && !x.modern && broken < resumeTries && x.ctx.Err() == nil; {
		n := t.n
		err = x.resume(p, t, polls)
		t.lastEvent(p, err) // what the next stream begins with must not continue an event that this one has cut
		if errors.Is(err, errNotResumed) {
			break
		}
		switch {
		// An event is progress, however the stream has ended.
		case t.n > n:
			broken, polls = 0, 0
		case err != nil:
			broken++
		default:
			broken, polls = 0, polls+1
		}
	}
	switch {
	// All is said, so it does not matter how the stream has ended.
	case !x.mayBeAnswered():
	case err == nil:
		x.fail("the server ended the stream of the answer before the answer came")
	// err says only that the stream was closed on this side.
	case context.Cause(x.ctx) != nil && x.s.ctx.Err() == nil:
		x.fail(context.Cause(x.ctx).Error())
	default:
		x.fail("the stream of the server's answer broke: " + err.Error() + "; the server may have executed the request")
	}
}

// lastEvent handles an event that was not complete when the stream ended with err. It is passed on if
// the stream ended in good order and the event has a whole message. attache then resumes the stream after this event.
// The stream may have been cut: some proxies end a stream in good order when their server has cut it.
func (t *eventReader) lastEvent(p *eventstream.Parser, err error) {
	if err == nil && t.f.Size() > 0 {
		n := t.n
		if m := t.f.End(); m != nil && !m.TooLarge() { // of a long one the end may be missing
			p.TakeID()
			n++
		}
		t.Event(nil)
		t.n = n // a part of an event is no progress
	}
	t.f.Reset()
	t.f.Out.Flush()
}

// errNotResumed is returned if the server refuses to resume a stream.
var errNotResumed = errors.New("it could not be taken up again")

// defaultRetry is the pause before a stream is resumed, unless the server has set one.
const defaultRetry = time.Second

// resume resumes a stream after the last event, and reads it to its end. polls is how many resumed
// streams in a row have ended without an event.
func (x *exchange) resume(p *eventstream.Parser, t *eventReader, polls int) error {
	wait := p.Retry
	// A server that names a pause of 0 and ends each stream without an event would be asked all the time.
	if wait < 0 || polls >= resumeTries {
		wait = max(wait, defaultRetry)
	}
	if !sleep(x.ctx, wait) {
		return x.ctx.Err()
	}
	h := http.Header{"Accept": {"text/event-stream"}, "Last-Event-Id": {string(p.ID)}}
	// The stream belongs to the session in which the request was sent, not to the present one.
	of := x.ticket
	if t := x.s.session.ticket(); x.method == "initialize" && t.generation == of.generation {
		of = t // its id came with the answer
	}
	of.headers(h)
	resp, err := x.s.send(x.ctx, http.MethodGet, h, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || !isEvents(resp.Header) {
		drain(resp)
		// A balancer whose server is being restarted answers 5xx. A server that has not noticed the break, and still
		// writes to the old stream, answers 409. Any other status is a refusal.
		if resp.StatusCode >= 500 || resp.StatusCode == http.StatusConflict {
			return errors.New("the server answered " + statusText(resp.StatusCode))
		}
		return fmt.Errorf("%w: the server answered %s", errNotResumed, statusText(resp.StatusCode))
	}
	body, err := decoded(resp)
	if err != nil {
		return err
	}
	p.Restart()
	x.resumed = true
	return each(&t.f, body, p.Feed)
}

// sleep waits for d, and reports false if ctx was done before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
