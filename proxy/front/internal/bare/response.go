// Package bare answers requests over HTTP/1.1 on their bare connection. A response that is
// open for hours then holds none of the buffers and goroutines of net/http, which take 20 KiB.
package bare

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A Response is a response without a known length. It is an http.ResponseWriter; what is
// written is on its way when Write returns. Write and End are called from one goroutine at a
// time.
type Response struct {
	conn   net.Conn
	header http.Header // nil when it was written
}

// maxCopy is how many bytes of a chunk are copied, so that it leaves in one write.
const maxCopy = 64 << 10

// Take takes the connection of a request from its server. It returns nil where that is not
// possible: the request is not of HTTP/1.1, or has a body.
func Take(w http.ResponseWriter, r *http.Request) *Response {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.ContentLength != 0 {
		return nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	return &Response{conn: conn, header: w.Header().Clone()}
}

// Header implements http.ResponseWriter.
func (r *Response) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter. The status is always 200.
func (r *Response) WriteHeader(int) {}

// Flush implements http.Flusher.
func (r *Response) Flush() {}

// SetWriteDeadline sets the time at which a Write fails.
func (r *Response) SetWriteDeadline(t time.Time) error { return r.conn.SetWriteDeadline(t) }

// Write implements io.Writer.
func (r *Response) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	var out bytes.Buffer
	r.begin(&out)
	fmt.Fprintf(&out, "%x\r\n", len(b))
	if len(b) > maxCopy {
		for _, piece := range [][]byte{out.Bytes(), b, []byte("\r\n")} {
			if _, err := r.conn.Write(piece); err != nil {
				return 0, err
			}
		}
		return len(b), nil
	}
	out.Write(b)
	out.WriteString("\r\n")
	if _, err := r.conn.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// begin adds the head of the response to what is written first.
func (r *Response) begin(out *bytes.Buffer) {
	if r.header == nil {
		return
	}
	h := r.header
	r.header = nil
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("Transfer-Encoding", "chunked")
	h.Set("Connection", "close")
	out.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(out) // never fails
	out.WriteString("\r\n")
}

// End ends the response so that its client sees that it is complete. Close is still needed.
func (r *Response) End() {
	var out bytes.Buffer
	r.begin(&out)
	out.WriteString("0\r\n\r\n")
	_, _ = r.conn.Write(out.Bytes()) // fails when the client has left
}

// Close closes the connection. A client sees a response without End break off.
func (r *Response) Close() { _ = r.conn.Close() }

// Watch calls left when the client has closed the connection, or Close was called. A client
// that sends something more is not watched any longer, like net/http does.
func (r *Response) Watch(left func()) {
	b := make([]byte, 1)
	go func() {
		if n, _ := r.conn.Read(b); n == 0 {
			left()
		}
	}()
}
