// Package httpclient is a client of MCP over Streamable HTTP for a benchmark. It uses little
// CPU time itself.
package httpclient

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// A Client is a session with a front, on its own connection. It sends each Write as a
// request, and Read returns the answers.
type Client struct {
	key     string // the credential
	conn    net.Conn
	in      *bufio.Reader
	session string
	req     []byte
	replies chan []byte
	failed  chan error // the error of a message that could not be sent or was not answered
	rest    []byte     // of the answer that Read has begun to return
	stop    func() bool
}

// Dial connects to a front. The connection is closed when ctx ends. Every request has the key.
func Dial(ctx context.Context, address, key string) (*Client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return &Client{key: key, conn: conn, in: bufio.NewReaderSize(conn, 64<<10), replies: make(chan []byte, 1), failed: make(chan error, 1), stop: stop}, nil
}

// Write sends one message. If it fails, the next Read returns its error, too.
func (h *Client) Write(b []byte) (int, error) {
	n, err := h.post(b)
	if err != nil {
		select {
		case h.failed <- err:
		default:
		}
	}
	return n, err
}

func (h *Client) post(b []byte) (int, error) {
	q := append(h.req[:0], "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "+h.key+"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	if h.session != "" {
		q = append(append(append(q, "Mcp-Session-Id: "...), h.session...), "\r\nMcp-Protocol-Version: 2025-11-25\r\n"...)
	}
	q = append(strconv.AppendInt(append(q, "Content-Length: "...), int64(len(b)), 10), "\r\n\r\n"...)
	h.req = append(q, b...)
	if _, err := h.conn.Write(h.req); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(h.in, nil)
	if err != nil {
		return 0, err
	}
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return len(b), h.events(resp.Body)
	}
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return 0, err
	case resp.StatusCode == http.StatusAccepted:
		return len(b), nil
	case resp.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("HTTP %d: %.200s", resp.StatusCode, answer)
	}
	if h.session == "" {
		h.session = resp.Header.Get("Mcp-Session-Id")
	}
	h.replies <- append(bytes.TrimRight(answer, "\n"), '\n')
	return len(b), nil
}

// events reads an answer that is a stream of events.
func (h *Client) events(body io.Reader) error {
	in := bufio.NewReaderSize(body, 64<<10)
	var lines []byte
	for {
		b, err := in.ReadSlice('\n')
		if data, ok := bytes.CutPrefix(b, []byte("data: ")); ok && len(data) > 1 { // not an event that only has an id
			lines = append(lines, data...)
		}
		if len(lines) > 0 && (err != nil || in.Buffered() == 0) {
			h.replies <- lines
			lines = nil
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Read reads the answers.
func (h *Client) Read(b []byte) (int, error) {
	if len(h.rest) == 0 {
		select {
		case h.rest = <-h.replies:
		case err := <-h.failed:
			return 0, err
		}
	}
	n := copy(b, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

// Close closes the connection.
func (h *Client) Close() error {
	h.stop()
	return h.conn.Close()
}

// Ask sends a request without a body, and does not read the body of the response. GET opens the
// session's stream and leaves it open, so nothing can be sent after it. DELETE ends the session.
func (h *Client) Ask(method string) error {
	if _, err := fmt.Fprintf(h.conn, "%s /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nMcp-Session-Id: %s\r\nMcp-Protocol-Version: 2025-11-25\r\nAccept: text/event-stream\r\n\r\n", method, h.key, h.session); err != nil {
		return err
	}
	resp, err := http.ReadResponse(h.in, nil)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("HTTP %d to %s", resp.StatusCode, method)
	}
	return err
}
