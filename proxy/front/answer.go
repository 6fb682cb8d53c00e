package front

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/attache-mcp/attache/proxy/front/internal/event"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A writer writes the messages of a stream to a response, as JSON or as events.
type writer struct {
	x       *exchange
	message *message // that is answered; nil for a GET
	mode    mode
	open    bool   // within a message that comes in parts
	events  []byte // that are not written yet
}

type mode uint8

const (
	undecided mode = iota
	asJSON
	asEvents
)

// answer writes what comes on a stream until it ends or the client leaves. It reports
// whether it has ended.
func (x *exchange) answer(t *stream, to *message) bool {
	w := &writer{x: x, message: to}
	defer t.leave()
	if !x.accept.JSON && w.begin() != nil {
		return false
	}
	return w.run(t)
}

// run writes what comes on a stream.
func (w *writer) run(t *stream) bool {
	t.join(&w.x.f.pulse)
	defer w.x.f.pulse.Remove(&t.member)
	var items []item
	for {
		select {
		case <-t.wake:
			var closed bool
			var err error
			items, closed, err = w.next(t, items)
			switch {
			case err == errCut:
				panic(http.ErrAbortHandler)
			case err != nil:
				return false
			case closed:
				w.end()
				return true
			}
		case <-w.x.r.Context().Done():
			return false
		}
	}
}

// errCut is what a writer meets that has written a part of a message whose rest is lost. The
// client has to see that the message was cut.
var errCut = errors.New("the rest of a message is lost")

// next writes what has come on a stream, and returns the slice that it came in, empty, which the
// next call may use. closed says that nothing follows.
func (w *writer) next(t *stream, used []item) (empty []item, closed bool, err error) {
	items, closed, silent := t.take(used)
	if silent && len(items) == 0 {
		err = w.comment()
	}
	if err == nil {
		err = w.items(items, closed)
	}
	if err == nil && closed && w.open {
		err = errCut
	}
	clear(items)
	return items, closed, err
}

// items writes messages; closed says that no other follows.
func (w *writer) items(items []item, closed bool) error {
	if len(items) == 0 {
		return nil
	}
	if w.mode == undecided {
		if err := w.decide(items[0]); err != nil {
			return err
		}
	}
	w.x.allowWrite()
	for _, i := range items {
		if err := w.item(i); err != nil {
			return err
		}
		i.release()
	}
	if w.mode == asJSON && closed && !w.open {
		return nil // the server flushes at the end
	}
	if err := w.writeEvents(); err != nil {
		return err
	}
	return w.x.rc.Flush()
}

// Values of headers, which the server does not change.
var ofJSON, notStored = []string{"application/json"}, []string{"no-store"}

// decide chooses JSON where the reply comes first, and events for all else.
func (w *writer) decide(first item) error {
	if w.x.accept.JSON && (first.final || !w.x.accept.Events) {
		w.mode = asJSON
		h := w.x.w.Header()
		h["Content-Type"], h["Cache-Control"] = ofJSON, notStored
		if first.final && first.part == whole {
			if len(first.data) > 1<<10 { // the server adds it to a body of "a few KB" (http.ResponseWriter)
				h["Content-Length"] = []string{strconv.Itoa(len(first.data))}
			}
			if first.failed {
				status, after := w.message.status(first)
				if after != "" {
					h.Set("Retry-After", after)
				}
				w.x.w.WriteHeader(status)
			}
		}
		return nil
	}
	return w.begin()
}

// begin begins a stream of events.
func (w *writer) begin() error {
	w.mode = asEvents
	h := w.x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.x.headed = true
	return w.write([]byte(":\n\n"), true)
}

// comment shows that the stream is alive, and begins one where none has been. Where no
// comment may stand it allows more time: HTTP/2 ends a stream when the time to write is
// over, also if nobody writes.
func (w *writer) comment() error {
	switch {
	case w.mode == asJSON || w.open || !w.x.accept.Events:
		w.x.allowWrite()
		return nil
	case w.mode == undecided:
		return w.begin()
	}
	return w.write([]byte(":\n\n"), true)
}

func (w *writer) write(b []byte, flush bool) error {
	w.x.allowWrite()
	_, err := w.x.w.Write(b)
	if err == nil && flush {
		err = w.x.rc.Flush()
	}
	return err
}

// item writes a message, a part of one, or events.
func (w *writer) item(i item) error {
	if w.open && i.part == whole {
		return errCut
	}
	if i.text {
		if err := w.writeEvents(); err != nil {
			return err
		}
		return w.write(i.data, false)
	}
	begins := !w.open // a message that goes on
	w.open = i.part == middle
	if w.mode == asJSON {
		_, err := w.x.w.Write(i.data)
		return err
	}
	return w.event(i.data, begins, !w.open)
}

// event adds data as an event or a part of one to what is written next.
func (w *writer) event(data []byte, begins, ends bool) error {
	if begins {
		w.events = append(w.events, event.Start...)
	}
	for line, end := range event.Lines(data) {
		if len(w.events)+len(line) > maxEvents {
			if err := w.writeEvents(); err != nil {
				return err
			}
		}
		if len(line) > maxEvents {
			if err := w.write(line, false); err != nil {
				return err
			}
		} else {
			w.events = append(w.events, line...)
		}
		w.events = append(w.events, end...)
	}
	if ends {
		w.events = append(w.events, event.End...)
	}
	return nil
}

// maxEvents is about how many bytes of events are written at once.
const maxEvents = 32 << 10

// writeEvents writes the events that were added.
func (w *writer) writeEvents() error {
	b := w.events
	if len(b) == 0 {
		return nil
	}
	w.events = w.events[:0]
	return w.write(b, false)
}

// end ends the response.
func (w *writer) end() {
	if w.mode == undecided {
		w.x.refuse(http.StatusServiceUnavailable, nil, wire.CodeInternalError, "the session is over")
	}
}
