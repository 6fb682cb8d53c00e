package front

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/attache-mcp/attache/proxy/front/internal/body"
	"github.com/attache-mcp/attache/proxy/wire"
)

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
