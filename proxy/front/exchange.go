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
	"github.com/attache-mcp/attache/proxy/front/internal/body"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// writeTime is how long a client may take to read maxWrite bytes.
	writeTime = 30 * time.Second
	maxWrite  = 128 << 10
	// bodyTime is how long a client may take to send a body.
	bodyTime = 60 * time.Second
)

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
	legacy := legacyHeader(x.header(versionHeader))
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

type exchange struct {
	f           *Front
	w           http.ResponseWriter
	r           *http.Request
	rc          http.ResponseController
	accept      accept.Accept
	body        body.Buffer // of the message, until the relay has it
	who         Principal
	credential  string
	wroteHeader bool // the header was written before the answer
}

// allowWrite moves the write deadline to writeTime from now.
func (x *exchange) allowWrite() { _ = x.rc.SetWriteDeadline(time.Now().Add(writeTime)) }

// allowRefusal is allowWrite for an answer that may have to wait until the body is read.
func (x *exchange) allowRefusal() {
	_ = x.rc.SetWriteDeadline(time.Now().Add(bodyTime + writeTime))
}

// refuse answers the request, whose raw id is id or null if id is nil, with an error.
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
	switch {
	case errors.Is(err, body.ErrTooLarge):
		x.w.Header().Set("Connection", "close")
		x.logRefusal(&x.f.refused.limit, slog.LevelWarn, errors.New("the body is larger than serve.limits.body"))
		x.refuse(http.StatusRequestEntityTooLarge, nil, wire.CodeInvalidRequest, fmt.Sprintf("the body is larger than this server accepts: it may have %d bytes (serve.limits.body)", x.f.o.Limits.Body))
	case errors.Is(err, body.ErrFull):
		x.busy(nil, "too many large requests are being read: try again")
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		x.w.Header().Set("Connection", "close")
		x.refuse(http.StatusBadRequest, nil, wire.CodeInvalidRequest, "the body could not be read: it ends too early, or is not encoded as its headers say")
	case err != nil:
		x.w.Header().Set("Connection", "close")
		x.refuse(http.StatusRequestTimeout, nil, wire.CodeInvalidRequest, "the body could not be read in time")
	default:
		_ = x.rc.SetReadDeadline(time.Time{})
		return append(bytes.TrimRight(bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF")), " \t\r\n"), '\n'), true
	}
	return nil, false
}
