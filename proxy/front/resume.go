package front

import (
	"net/http"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/wire"
)

// resumes reports whether the clients of a revision take up the streams of their requests again (SEP-1699).
// Most clients of earlier revisions do not.
func resumes(version string) bool { return version == "2025-11-25" }

// start returns the beginning of a stream of events: a comment, and what the client gets again. It begins to record
// the events if the client may take up the stream later.
func (w *writer) start() []byte {
	if w.reader == nil && w.call != nil && w.call.stream.recorder != nil {
		w.reader = w.call.stream.recorder.Record(w.t, w.call.raw, w.x.interrupt)
	}
	return append([]byte(":\n\n"), w.again...)
}

// interrupt makes a write of the response fail that waits for the client.
func (x *exchange) interrupt() { _ = x.rc.SetWriteDeadline(time.Unix(1, 0)) }

// leave ends the writing of a stream.
func (w *writer) leave() {
	if w.reader != nil {
		w.reader.Leave(!w.open)
	} else {
		w.t.Abandon()
	}
}

// resume answers a GET that takes up the stream of a request again, after the event with the id last. Some
// clients wait until their timeout if they cannot, so a request whose answer is lost is answered with an error.
// Some ask again after an error; 204 ends that.
func (x *exchange) resume(id, last string) {
	request, ok := outbox.ParseID(last)
	if !ok {
		x.refuse(http.StatusBadRequest, nil, wire.CodeInvalidRequest, "no event here has the id in Last-Event-ID: open a new stream without it")
		return
	}
	s := x.session(id, nil)
	if s == nil {
		return
	}
	defer s.release()
	x.w.Header().Set(sessionHeader, s.id)
	reader := s.recorder.TakeUp(last, x.interrupt)
	if reader == nil {
		x.answerLost(request)
		return
	}
	w := &writer{x: x, t: reader.Stream, reader: reader}
	over, abandoned := w.t.Progress()
	w.again, ok = reader.After(last)
	switch {
	case abandoned, over && !ok:
		w.leave()
		x.answerLost(request)
	case over && len(w.again) == 0:
		w.leave()
		x.finish(http.StatusNoContent)
	default:
		// This may be the only stream on which the client reads requests of the server, and the call may wait for one.
		s.mu.Lock()
		s.deliverToCallLocked(w.t)
		s.mu.Unlock()
		x.answer(w)
	}
}

// answerLost answers a request whose answer was not kept with an error, once.
func (x *exchange) answerLost(request []byte) {
	if len(request) == 0 {
		x.finish(http.StatusNoContent)
		return
	}
	w := &writer{x: x}
	if w.begin() != nil {
		return
	}
	reply := wire.ErrorReply(request, wire.CodeInternalError, "the connection was lost, and the answer was not kept: the request may have been executed")
	_ = w.event(reply.Frame(), true, true)
	w.events = append(w.events[:len(w.events)-1], outbox.EndField()+"\n"...)
	_ = w.write(w.events, true)
}
