package front

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/attache-mcp/attache/proxy/front/internal/event"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A writer writes the messages of a stream to a response, as JSON or as events. It does not keep the body of
// the request in memory: a call may run for hours.
type writer struct {
	x      *exchange
	t      *outbox.Stream
	call   *call // the request, or the first of an array; nil for a GET
	mode   mode
	open   bool           // part of a message has been written, and more follows
	events []byte         // not written yet
	reader *outbox.Reader // nil unless events are recorded
	failed error          // of the first write of recorded events that failed
	again  []byte         // events with which the response begins
}

type mode uint8

const (
	undecided mode = iota
	asJSON
	asEvents
)

// answer writes the messages of a stream to the response until the stream ends or the client disconnects. It
// reports whether the stream has ended.
func (x *exchange) answer(w *writer) bool {
	t := w.t
	// Runs last: after it the next reader of the stream may join the pulse, which this one must have left.
	defer w.leave()
	if !x.accept.JSON && w.begin() != nil {
		return false
	}
	x.f.pulse.Join(t)
	defer x.f.pulse.Leave(t)
	var items []outbox.Item
	for {
		select {
		case <-t.Wake():
			var closed bool
			var err error
			items, closed, err = w.writeNext(items)
			switch {
			case err == errTruncated:
				// net/http closes the connection. After a return it would end the response in good
				// order, and the client would take a part for the whole.
				panic(http.ErrAbortHandler)
			case err != nil:
				return false
			case closed:
				if w.mode == undecided {
					x.refuse(http.StatusServiceUnavailable, nil, wire.CodeInternalError, "the session is over")
				}
				return true
			}
		case <-x.r.Context().Done():
			return false
		case <-w.reader.Replaced():
			return false
		}
	}
}

// errTruncated is returned when the remainder of a partly written message is lost. The caller aborts
// the connection, so that the client notices.
var errTruncated = errors.New("the rest of a message is lost")

// writeNext writes the items that are queued. It returns their slice, emptied, for use in the next call.
// closed reports that nothing follows.
func (w *writer) writeNext(used []outbox.Item) (empty []outbox.Item, closed bool, err error) {
	items, closed, silent := w.t.Take(used)
	if silent && len(items) == 0 {
		err = w.comment()
	}
	if err == nil {
		err = w.items(items)
	}
	// The stream has ended within a long message.
	if err == nil && closed && w.open {
		err = errTruncated
	}
	// The slice is used again, and must not keep the messages in memory until then.
	clear(items)
	return items, closed, err
}

func (w *writer) items(items []outbox.Item) error {
	if len(items) == 0 {
		return nil
	}
	if w.mode == undecided {
		if err := w.decide(items[0]); err != nil {
			return err
		}
	}
	for _, i := range items {
		// After an error net/http may still read the item, so it is not released: see
		// outbox.Stream.Abandon.
		if err := w.item(i); err != nil {
			return err
		}
		if w.failed == nil {
			i.Release()
		}
	}
	final := items[len(items)-1].Final && !w.open
	if w.mode == asJSON && final {
		return nil // net/http flushes when the handler returns
	}
	w.identify(final)
	if err := w.writeEvents(); err != nil {
		return err
	}
	if w.reader != nil && !w.open {
		w.reader.Mark()
	}
	if w.failed != nil {
		return w.failed
	}
	return w.x.rc.Flush()
}

// identify gives the last of the pending events an id, if its stream may be taken up again. It is the last
// event of all items, so that a client gets all of them again, or none. final says that it is the reply.
func (w *writer) identify(final bool) {
	if w.reader == nil || w.open {
		return
	}
	b := w.events[:len(w.events)-1] // without the empty line
	if final {
		b = append(b, outbox.EndField()...)
	} else {
		b = w.reader.AppendNext(b)
	}
	w.events = append(b, '\n')
}

// Header values that all responses share. net/http does not change them.
var jsonContentType, noStore = []string{"application/json"}, []string{"no-store"}

// decide chooses JSON if the reply comes first, and events otherwise.
func (w *writer) decide(first outbox.Item) error {
	if w.x.accept.JSON && (first.Final || !w.x.accept.Events) {
		w.mode = asJSON
		h := w.x.w.Header()
		// Without http.Header.Set, which allocates a slice for each value.
		h["Content-Type"], h["Cache-Control"] = jsonContentType, noStore
		if first.Final && first.Part == outbox.Whole {
			if len(first.Data) > 1<<10 { // net/http sets it for smaller bodies (see http.ResponseWriter)
				h["Content-Length"] = []string{strconv.Itoa(len(first.Data))}
			}
			if first.Failed {
				if w.call.initialize {
					delete(h, sessionHeader) // its session ends: some clients take the id from any answer
				}
				status, after := w.call.status(first)
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

func (w *writer) begin() error {
	w.mode = asEvents
	h := w.x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	// Nginx would hold events back until its buffer is full.
	h.Set("X-Accel-Buffering", "no")
	w.x.wroteHeader = true
	return w.write(w.start(), true)
}

// comment keeps a silent response alive: it writes a comment, and first begins a stream of events if
// the response has not begun. Where no comment is allowed it only moves the write deadline, because
// HTTP/2 ends a stream at the deadline even if nothing is being written.
func (w *writer) comment() error {
	switch {
	case w.mode == asJSON || w.open || !w.x.accept.Events:
		w.x.allowWrite()
		return nil
	case w.mode == undecided:
		if err := w.begin(); err != nil || w.reader == nil {
			return err
		}
	}
	if w.reader.NeedsID() {
		return w.write(w.reader.Begin(), true)
	}
	return w.write([]byte(":\n\n"), true)
}

func (w *writer) write(b []byte, flush bool) (err error) {
	// In parts, each with a deadline of its own: a slow client may take long for a long message, as
	// long as it reads.
	for n := 0; len(b) > 0 && err == nil; b = b[n:] {
		n = min(len(b), maxWrite)
		w.x.allowWrite()
		if w.reader.IsReplaced() { // allowWrite may have undone the interrupt
			return errors.New("the client reads the stream elsewhere")
		}
		_, err = w.x.w.Write(b[:n])
	}
	if err == nil && flush {
		err = w.x.rc.Flush()
	}
	return err
}

func (w *writer) item(i outbox.Item) error {
	if w.open && i.Part == outbox.Whole {
		return errTruncated
	}
	// Text is whole events already, and must not overtake the events that are pending.
	if i.Text {
		if err := w.writeEvents(); err != nil {
			return err
		}
		if w.reader == nil {
			return w.send(i.Data)
		}
		end := len(i.Data) - 1
		w.events = append(w.events, i.Data[end:]...) // for identify
		return w.send(i.Data[:end])
	}
	// A message over the hold limit comes in several items, but is one event.
	begins := !w.open
	w.open = i.Part == outbox.Middle
	if w.mode == asJSON {
		return w.send(i.Data)
	}
	return w.event(i.Data, begins, !w.open)
}

// event appends data to the pending events, as a whole event or as a part of one.
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
			if err := w.send(line); err != nil {
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

// maxEvents is about how many bytes of events one write has.
const maxEvents = 32 << 10

func (w *writer) writeEvents() error {
	b := w.events
	if len(b) == 0 {
		return nil
	}
	w.events = w.events[:0]
	err := w.send(b)
	if w.failed != nil {
		w.events = nil // net/http may still read b
	}
	return err
}

// send writes a part of the response. If events are recorded, it records it, and returns no error: items
// continues after a failed write, so that all items it has taken are recorded.
func (w *writer) send(b []byte) error {
	if w.reader == nil {
		return w.write(b, false)
	}
	if w.reader.Keep(b); w.failed == nil {
		w.failed = w.write(b, false)
	}
	return nil
}
