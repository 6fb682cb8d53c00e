// Package bare writes responses to HTTP/1.1 requests directly to their connection. A response
// that is open for hours then needs none of the buffers and goroutines of net/http, which take
// 20 KiB.
package bare

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A Response is a response of unknown length. It is an http.ResponseWriter whose Write does
// not buffer. Only one goroutine at a time may call Write and End.
type Response struct {
	conn   net.Conn
	header http.Header // nil after it was written
}

// maxCopy is the size of the largest chunk that is copied to be written at once.
const maxCopy = 64 << 10

// Take hijacks the connection of a request from its server. It returns nil if the request is not
// HTTP/1.1 or has a body, or if the connection cannot be hijacked.
func Take(w http.ResponseWriter, r *http.Request) *Response {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.ContentLength != 0 {
		return nil
	}
	// The reader that Hijack returns is not needed: the response ends the connection, so a request that a client has sent
	// behind this one is not answered.
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

// SetWriteDeadline sets the deadline of Write.
func (r *Response) SetWriteDeadline(t time.Time) error { return r.conn.SetWriteDeadline(t) }

// Write implements io.Writer.
func (r *Response) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	var out bytes.Buffer
	r.begin(&out)
	fmt.Fprintf(&out, "%x\r\n", len(b))
	// One write for each chunk, because each write may be a packet; three for a long one, which is not copied.
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

// begin adds the head of the response to out, the first time.
func (r *Response) begin(out *bytes.Buffer) {
	if r.header == nil {
		return
	}
	h := r.header
	r.header = nil
	h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	h.Set("Transfer-Encoding", "chunked")
	h.Set("Connection", "close") // nobody reads another request
	out.WriteString("HTTP/1.1 200 OK\r\n")
	_ = h.Write(out) // never fails
	out.WriteString("\r\n")
}

// End writes the end of the response, so that the client sees that it is complete. Call Close
// after it.
func (r *Response) End() {
	var out bytes.Buffer
	r.begin(&out)
	out.WriteString("0\r\n\r\n")
	_, _ = r.conn.Write(out.Bytes()) // fails if the client has left
}

// Close closes the connection. Without End, the client sees an incomplete response.
func (r *Response) Close() { _ = r.conn.Close() }

// Watch calls left when the client has closed the connection, or Close was called. It stops
// watching a client that sends more data, as net/http does.
func (r *Response) Watch(left func()) {
	// The only way to learn that a client has closed the connection is to read from it.
	b := make([]byte, 1)
	go func() {
		if n, _ := r.conn.Read(b); n == 0 {
			left()
		}
	}()
}
