package front

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/answer"
	"github.com/attache-mcp/attache/proxy/front/internal/body"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
	"github.com/attache-mcp/attache/proxy/front/internal/revision"
	"github.com/attache-mcp/attache/proxy/wire"
)

// bodyTime is how long a client may take to send a body. The timeouts of http.Server would also bound the wait for
// an answer, which may take hours, so each exchange sets deadlines of its own, which replace them.
const bodyTime = 60 * time.Second

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{f: f, w: w, r: r, rc: *http.NewResponseController(w)}
	if r.Header["Expect"] != nil {
		// net/http writes "100 Continue" when the body is read, and the write deadline of the
		// last request may have passed.
		x.allowRefusal()
	}
	if r.ContentLength != 0 {
		// Also for a request that is refused: net/http reads its body before it answers.
		_ = x.rc.SetReadDeadline(time.Now().Add(bodyTime))
	}
	if !x.admit() {
		return
	}
	legacy := revision.HasHandshake(x.header(versionHeader))
	switch {
	case r.Method == http.MethodPost:
		x.post()
	case r.Method == http.MethodGet && legacy:
		x.get()
	case r.Method == http.MethodDelete && legacy:
		x.delete()
	case r.Method == http.MethodGet || r.Method == http.MethodDelete:
		x.w.Header().Set("Allow", "POST, OPTIONS")
		x.refuse(http.StatusMethodNotAllowed, nil, wire.CodeInvalidRequest, "revision 2026-07-28 has only POST")
	default:
		x.w.Header().Set("Allow", "GET, POST, DELETE, OPTIONS")
		x.refuse(http.StatusMethodNotAllowed, nil, wire.CodeInvalidRequest, "this method is not served: send messages by POST")
	}
}

// An exchange is one HTTP request and its response. Only the goroutine of its handler uses it, and it ends with
// the handler. A value that lives longer, such as a bare stream, must not refer to it.
type exchange struct {
	f          *Front
	w          http.ResponseWriter
	r          *http.Request
	rc         http.ResponseController
	accept     accept.Accept
	body       body.Buffer // the body of the message, until the relay has it
	who        Principal
	credential string
}

// allowRefusal moves the write deadline for an answer that may have to wait until the body is read.
func (x *exchange) allowRefusal() {
	_ = x.rc.SetWriteDeadline(time.Now().Add(bodyTime + answer.WriteTime))
}

// writer returns a writer of messages to the response.
func (x *exchange) writer(t *outbox.Stream, q *answer.Request) *answer.Writer {
	return &answer.Writer{Response: x.w, Control: x.rc, Accept: x.accept, Stream: t, Request: q}
}

// answer writes a response to its end, and reports whether its stream has ended. Otherwise the client has
// disconnected, or reads the stream in another response.
func (x *exchange) answer(w *answer.Writer) bool {
	ended := w.Serve(x.r.Context(), &x.f.pulse)
	if ended && w.Mode == answer.Undecided {
		x.refuse(http.StatusServiceUnavailable, nil, wire.CodeInternalError, "the session is over")
	}
	return ended
}

// refuse answers the request with an error. id is the raw id of the request, nil for null. The body is a JSON-RPC
// error with every status, as the specification allows (basic/transports, "Sending Messages to the Server").
func (x *exchange) refuse(status int, id []byte, code int, text string) {
	m := wire.ErrorReply(id, code, text)
	h := x.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	// Package remote, and so an attache in front of this one, tries again only with this header.
	if (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) && h.Get("Retry-After") == "" {
		h.Set("Retry-After", "1")
	}
	x.allowRefusal()
	x.w.WriteHeader(status)
	_, _ = x.w.Write(m.Frame())
}

// executedHeader tells a client that a request answered with 503 was not executed and may be sent
// again. A server cannot forge it, because the front passes on no header of a server.
const executedHeader = "Attache-Executed"

// busy refuses with 503 a request that was not executed.
func (x *exchange) busy(id []byte, text string) {
	x.w.Header()[executedHeader] = []string{"nothing"}
	x.refuse(http.StatusServiceUnavailable, id, wire.CodeInternalError, text)
}

// finish answers with a status alone.
func (x *exchange) finish(status int) {
	x.allowRefusal()
	x.w.WriteHeader(status)
}

// readBody reads the whole body before anything is written, because an HTTP/1.1 server that answers
// while it reads loses answers. It returns the body with a line end, and without a byte order mark. ok
// is false if the request was refused.
func (x *exchange) readBody() (line []byte, ok bool) {
	x.body.Limits, x.body.Principal = x.f.o.Limits, x.who.ID
	data, err := x.body.Read(x.r.Body, x.r.ContentLength)
	// So that net/http does not read the rest of the body. After ErrFull it may, because the client is to try again.
	// Over HTTP/2 net/http does not read it anyway. There the header would close the connection, on which a reverse
	// proxy may have requests of other clients.
	if err != nil && !errors.Is(err, body.ErrFull) && x.r.ProtoMajor == 1 {
		x.w.Header().Set("Connection", "close")
	}
	switch {
	case errors.Is(err, body.ErrTooLarge):
		x.logRefusal(&x.f.refused.limit, slog.LevelWarn, errors.New("the body is larger than serve.limits.body"))
		x.refuse(http.StatusRequestEntityTooLarge, nil, wire.CodeInvalidRequest, fmt.Sprintf("the body is larger than this server accepts: it may have %d bytes (serve.limits.body)", x.f.o.Limits.Body))
	case errors.Is(err, body.ErrFull):
		x.busy(nil, "too many large requests are being read: try again")
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.refuse(http.StatusRequestTimeout, nil, wire.CodeInvalidRequest, "the body could not be read in time")
	case err != nil:
		x.refuse(http.StatusBadRequest, nil, wire.CodeInvalidRequest, "the body could not be read: it ends too early, or is not encoded as its headers say")
	default:
		_ = x.rc.SetReadDeadline(time.Time{})
		return append(bytes.TrimRight(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")), " \t\r\n"), '\n'), true
	}
	return nil, false
}
