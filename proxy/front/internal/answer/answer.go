// Package answer writes the messages of a stream to one HTTP response, as JSON or as server-sent events.
//
// If the first message is the reply, the response is JSON with that one message. Otherwise it is a stream of
// events that ends with the reply. If no message comes for some seconds, a comment begins a stream of events. A
// client that accepts only one of the two forms gets that form. If the client may take up the stream again, the
// events are recorded while they are written. If the client disconnects, the messages that are taken from the
// stream are still recorded, for the next response.
//
// Each write has its own deadline, because a client that does not read would hold the session's messages in
// memory for ever. The whole response has no deadline, because a call may run for hours.
package answer

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/event"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
)

const (
	// WriteTime is how long a client may take to read maxWrite bytes. The relay may wait for the client for as
	// long: see outbox.Stream.Push.
	WriteTime = 30 * time.Second
	maxWrite  = 128 << 10
)

// A Writer writes the messages of a stream to a response, as JSON or as events. It does not keep the body of
// the request in memory: a call may run for hours. One goroutine uses it at a time, except that any goroutine may
// call Interrupt.
type Writer struct {
	Response http.ResponseWriter
	Control  http.ResponseController // controls Response
	Accept   accept.Accept
	Stream   *outbox.Stream
	Request  *Request       // nil for a GET
	Reader   *outbox.Reader // nil unless events are recorded; set by the caller or by the first event
	Prefix   []byte         // events with which the response begins
	Mode     Mode

	open   bool   // part of a message has been written, and more follows
	events []byte // not written yet
	parts  int    // how many ids identifyPart has made since the last Mark
	failed error  // the error of the first failed write of recorded events
}

// A Mode says in which form a response is written.
type Mode uint8

const (
	// Undecided is the mode before the first message or comment: nothing has been written.
	Undecided Mode = iota
	// JSON is the mode of a response with one reply.
	JSON
	// Events is the mode of a stream of events. Its header has been sent.
	Events
)

// Serve writes the messages until the stream ends, the client disconnects, which ends ctx, or another Writer wants
// the Reader's place. It reports whether the stream has ended. If it has and the mode is Undecided, no message came,
// and the caller has to answer.
func (w *Writer) Serve(ctx context.Context, pulse *outbox.Pulse) bool {
	t := w.Stream
	// leave runs last: after it the next reader of the stream may join the pulse, and this reader must have
	// left the pulse by then.
	defer w.leave()
	if !w.Accept.JSON && w.begin() != nil {
		return false
	}
	pulse.Join(t)
	defer pulse.Leave(t)
	var items []outbox.Item
	for {
		select {
		case <-t.Wake():
			var closed bool
			var err error
			items, closed, err = w.writeNext(items)
			switch {
			case err == errTruncated:
				// This panic makes net/http close the connection. After a return, net/http would end the
				// response properly, and the client would take a part of the message for the whole message.
				panic(http.ErrAbortHandler)
			case err != nil:
				return false
			case closed:
				return true
			}
		case <-ctx.Done():
			return false
		case <-w.Reader.Replaced():
			return false
		}
	}
}

// errTruncated is returned when the remainder of a partly written message is lost. The caller aborts
// the connection, so that the client notices.
var errTruncated = errors.New("the rest of a message is lost")

// writeNext writes the items that are queued. It returns their slice, emptied, for use in the next call.
// closed reports that no item follows.
func (w *Writer) writeNext(used []outbox.Item) (empty []outbox.Item, closed bool, err error) {
	items, closed, silent := w.Stream.Take(used)
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

// items writes items, and then flushes: all items are already there, so one write and one flush serve many small
// messages, and no message waits for a later one.
func (w *Writer) items(items []outbox.Item) error {
	if len(items) == 0 {
		return nil
	}
	if w.Mode == Undecided {
		if err := w.decide(items[0]); err != nil {
			return err
		}
	}
	for n, i := range items {
		// After an error net/http may still read the item, so it is not released: see
		// outbox.Stream.Abandon.
		if err := w.item(i); err != nil {
			return err
		}
		if w.failed == nil {
			i.Release()
		}
		if w.Reader != nil && !w.open && n < len(items)-1 {
			w.identifyPart()
		}
	}
	final := items[len(items)-1].Final && !w.open
	if w.Mode == JSON && final {
		return nil // net/http flushes when the handler returns
	}
	recorded := w.Reader != nil && !w.open
	if recorded {
		w.identify(final)
	}
	if err := w.writeEvents(); err != nil {
		return err
	}
	if recorded {
		w.Reader.Mark()
		w.parts = 0
	}
	if w.failed != nil {
		return w.failed
	}
	return w.Control.Flush()
}

// identifyPart gives the last of the pending events an id, because the connection may break after that event. More events
// are written with it: see identify.
func (w *Writer) identifyPart() {
	w.parts++
	w.events = append(w.Reader.AppendPart(w.events[:len(w.events)-1], w.parts), '\n')
}

// identify gives an id to the last of the events that are written together. final says that this event is the reply.
func (w *Writer) identify(final bool) {
	b := w.events[:len(w.events)-1] // without the empty line
	if final {
		b = append(b, outbox.EndField()...)
	} else {
		b = w.Reader.AppendNext(b)
	}
	w.events = append(b, '\n')
}

// Header values that all responses share. net/http does not change them.
var jsonContentType, noStore = []string{"application/json"}, []string{"no-store"}

// decide chooses JSON if the reply comes first, and events otherwise. A client that does not accept events gets JSON,
// because only its reply is sent to it. Only a whole reply has its length and status in the header: for a long reply,
// neither is known when its first part is written.
func (w *Writer) decide(first outbox.Item) error {
	if !w.Accept.JSON || w.Accept.Events && !first.Final {
		return w.begin()
	}
	w.Mode = JSON
	h := w.Response.Header()
	// This does not use http.Header.Set, because it allocates a slice for each value.
	h["Content-Type"], h["Cache-Control"] = jsonContentType, noStore
	if !first.Final || first.Part != outbox.Whole {
		return nil
	}
	if len(first.Data) > 1<<10 { // net/http sets the length of smaller bodies (see http.ResponseWriter)
		h["Content-Length"] = []string{strconv.Itoa(len(first.Data))}
	}
	if first.Failed {
		if w.Request.Initialize {
			delete(h, "Mcp-Session-Id") // its session ends: some clients take the id from any answer
		}
		status, after := w.Request.status(first)
		if after != "" {
			h.Set("Retry-After", after)
		}
		w.Response.WriteHeader(status)
	}
	return nil
}

// begin sends the header and the beginning of a stream of events: see start.
func (w *Writer) begin() error {
	w.Mode = Events
	h := w.Response.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	// Nginx would hold events back until its buffer is full.
	h.Set("X-Accel-Buffering", "no")
	return w.write(w.start(), true)
}

// comment keeps a silent response alive: it writes a comment, and first begins a stream of events if
// the response has not begun. Where no comment is allowed it only moves the write deadline, because
// HTTP/2 ends a stream at the deadline even if nothing is being written.
func (w *Writer) comment() error {
	switch {
	case w.Mode == JSON || w.open || !w.Accept.Events:
		w.allowWrite()
		return nil
	case w.Mode == Undecided:
		if err := w.begin(); err != nil || w.Reader == nil {
			return err
		}
	}
	if w.Reader.NeedsID() {
		return w.write(w.Reader.Begin(), true)
	}
	return w.write([]byte(":\n\n"), true)
}

// write writes to the response and records nothing.
func (w *Writer) write(b []byte, flush bool) (err error) {
	// Each part has its own deadline: a slow client may take long for a long message, if it keeps reading.
	for n := 0; len(b) > 0 && err == nil; b = b[n:] {
		n = min(len(b), maxWrite)
		w.allowWrite()
		if w.Reader.IsReplaced() { // allowWrite may have undone the interrupt
			return errors.New("the client reads the stream elsewhere")
		}
		_, err = w.Response.Write(b[:n])
	}
	if err == nil && flush {
		err = w.Control.Flush()
	}
	return err
}

// item writes an item, or appends it to the pending events. All items of a long message come in a row, because
// outbox.Stream.Offer refuses other items in between. Only an item that Force adds, at the end of the session,
// breaks a long message off.
func (w *Writer) item(i outbox.Item) error {
	if w.open && i.Part == outbox.Whole {
		return errTruncated
	}
	// Text is whole events already, and must not overtake the events that are pending.
	if i.Text {
		if err := w.writeEvents(); err != nil {
			return err
		}
		if w.Reader == nil {
			return w.send(i.Data)
		}
		for text := i.Data; ; w.identifyPart() {
			end := bytes.Index(text, []byte(event.End)) + len(event.End)
			if len(w.events)+end > maxEvents {
				if err := w.writeEvents(); err != nil {
					return err
				}
			}
			w.events = append(w.events, text[:end]...)
			if text = text[end:]; len(text) == 0 {
				return nil // items gives an id to the last event
			}
		}
	}
	// A message over the hold limit comes in several items, but is one event.
	begins := !w.open
	w.open = i.Part == outbox.Middle
	if w.Mode == JSON {
		return w.send(i.Data)
	}
	return w.event(i.Data, begins, !w.open)
}

// event appends data to the pending events, as a whole event or as a part of one. It copies small pieces, so that many
// go in one write, and writes long pieces without a copy.
func (w *Writer) event(data []byte, begins, ends bool) error {
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

// start returns the beginning of a stream of events: a comment, and the events that the client gets again. It
// begins to record the events if the client may take up the stream later.
func (w *Writer) start() []byte {
	if q := w.Request; w.Reader == nil && q != nil && q.Recorder != nil {
		w.Reader = q.Recorder.Record(w.Stream, q.Raw, w.Interrupt)
	}
	return append([]byte(":\n\n"), w.Prefix...)
}

// allowWrite moves the write deadline to WriteTime from now.
func (w *Writer) allowWrite() { _ = w.Control.SetWriteDeadline(time.Now().Add(WriteTime)) }

// Interrupt makes a write that waits for the client fail.
func (w *Writer) Interrupt() { _ = w.Control.SetWriteDeadline(time.Unix(1, 0)) }

// leave ends the writing of a stream.
func (w *Writer) leave() {
	if w.Reader != nil {
		w.Reader.Leave(!w.open)
	} else {
		w.Stream.Abandon()
	}
}

// WriteLast writes a response with one event. The id of the event says that no event follows it.
func (w *Writer) WriteLast(frame []byte) {
	if w.begin() != nil {
		return
	}
	_ = w.event(frame, true, true)
	w.identify(true)
	_ = w.write(w.events, true)
}

// maxEvents is about how many bytes of events one write has.
const maxEvents = 32 << 10

// writeEvents writes the pending events, and uses their memory again.
func (w *Writer) writeEvents() error {
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

// send writes a part of the response. If events are recorded, send also records the part, and returns no error:
// items continues after a failed write, so that it records all items that it has taken.
func (w *Writer) send(b []byte) error {
	if w.Reader == nil {
		return w.write(b, false)
	}
	if w.Reader.Keep(b); w.failed == nil {
		w.failed = w.write(b, false)
	}
	return nil
}
