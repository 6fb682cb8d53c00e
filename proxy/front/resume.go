package front

import (
	"net/http"

	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/wire"
)

// resume answers a GET that takes up the stream of a request again, after the event with the id last. The stream has
// one reader at a time: TakeUp has waited until the response before has left it, and then resume writes the recorded
// events and the messages that have come meanwhile. Some clients wait until their timeout if they cannot take up a
// stream, so resume answers a request whose answer is lost with an error. Some clients ask again after an error; 204
// ends that.
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
	w := x.writer(nil, nil)
	if w.Reader = s.recorder.TakeUp(last, w.Interrupt); w.Reader == nil {
		x.answerLost(request)
		return
	}
	w.Stream = w.Reader.Stream
	over, abandoned := w.Stream.Progress()
	w.Prefix, ok = w.Reader.After(last)
	switch {
	case abandoned, over && !ok:
		w.Reader.Leave(true)
		x.answerLost(request)
	case over && len(w.Prefix) == 0:
		w.Reader.Leave(true)
		x.finish(http.StatusNoContent)
	default:
		// This may be the only stream on which the client reads requests of the server, and the call may wait for one.
		s.mu.Lock()
		s.deliverToCallLocked(w.Stream)
		s.mu.Unlock()
		x.answer(w)
	}
}

// answerLost answers a request whose answer was not kept with one error. The id of that event names no request, so
// the next GET with that id gets 204. request is empty if the client already has the answer.
func (x *exchange) answerLost(request []byte) {
	if len(request) == 0 {
		x.finish(http.StatusNoContent)
		return
	}
	reply := wire.ErrorReply(request, wire.CodeInternalError, "the connection was lost, and the answer was not kept: the request may have been executed")
	x.writer(nil, nil).WriteLast(reply.Frame())
}
