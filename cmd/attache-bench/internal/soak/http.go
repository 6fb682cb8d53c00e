package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

type httpLink struct {
	client    *client
	url       string
	transport *http.Transport
	session   string // from the answer to initialize
	life      context.Context
	leave     context.CancelFunc // cancels the running requests
}

// idleConnection is how long a client keeps an idle connection. attache closes a new connection
// that sends no request within 10 s. A request that is sent at that moment gets no response, so
// a client closes its connections much earlier.
const idleConnection = 2 * time.Second

// openHTTP returns an opener for the endpoint at url.
func openHTTP(url string) opener {
	return func(c *client) (link, error) {
		l := &httpLink{client: c, url: url, transport: &http.Transport{IdleConnTimeout: idleConnection}}
		l.life, l.leave = context.WithCancel(context.Background())
		return l, nil
	}
}

func (l *httpLink) request(ctx context.Context, method string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.url, body)
	if err != nil {
		return nil, err
	}
	r.GetBody = nil // the transport must not send a request twice
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case l.client.modern:
		r.Header.Set(versionHeader, modernVersion)
	case l.session != "":
		r.Header.Set(versionHeader, "2025-11-25")
		r.Header.Set(sessionHeader, l.session)
	}
	return r, nil
}

func (l *httpLink) call(ctx context.Context, q *request) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	close(q.written)
	for {
		b, err := l.try(ctx, q)
		switch {
		case err == nil:
			return b, nil
		case l.life.Err() != nil:
			return nil, errGone
		case errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil && l.client.front.excuses(l.client, q.start, time.Now()):
			machine.Pause(ctx, 50*time.Millisecond) // nobody listens, so nothing was sent
			q.start = time.Now()
			continue
		}
		return nil, err
	}
}

func (l *httpLink) try(ctx context.Context, q *request) ([]byte, error) {
	r, err := l.request(ctx, http.MethodPost, bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	if l.client.modern {
		r.Header.Set("Mcp-Method", q.method)
		if q.name != "" {
			r.Header.Set("Mcp-Name", q.name)
		}
	}
	resp, err := l.transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("no HTTP response: %w", err)
	}
	defer resp.Body.Close()
	if id := resp.Header.Get(sessionHeader); q.method == "initialize" {
		l.session = id
	}
	var body io.Reader = resp.Body
	if q.slow {
		body = &slowReader{r: body}
	}
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/event-stream") {
		return readEvents(body)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("the HTTP response (%s) broke after %d bytes: %w", resp.Status, len(b), err)
	}
	var m message
	if answers := json.Unmarshal(b, &m) == nil && m.Error != nil && string(m.ID) == q.id; answers && resp.StatusCode == http.StatusServiceUnavailable {
		return b, nil // the front does not reach its server
	}
	if resp.StatusCode != http.StatusOK {
		err := fmt.Errorf("HTTP %d: %.300s", resp.StatusCode, b)
		if resp.StatusCode == http.StatusNotFound && !l.client.modern {
			return nil, fmt.Errorf("%w: %w", errLost, err)
		}
		return nil, err
	}
	return b, nil
}

// readEvents reads events up to the first response. The caller checks its id.
func readEvents(body io.Reader) ([]byte, error) {
	lines := bufio.NewReader(body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("the stream of events broke: %w", err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		var m message
		if !ok || len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, fmt.Errorf("the event %.200q cannot be read: %w", data, err)
		}
		if m.Method == "" {
			return data, nil
		}
	}
}

type slowReader struct{ r io.Reader }

func (s *slowReader) Read(b []byte) (int, error) {
	time.Sleep(5 * time.Millisecond)
	return s.r.Read(b[:min(len(b), 8<<10)])
}

// send sends a request whose response has no content, and returns its status.
func (l *httpLink) send(ctx context.Context, method string, body []byte) (status int, err error) {
	r, err := l.request(ctx, method, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	resp, err := l.transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func (l *httpLink) notify(ctx context.Context, body []byte) error {
	status, err := l.send(ctx, http.MethodPost, body)
	if err == nil && status != http.StatusAccepted {
		err = fmt.Errorf("HTTP %d for a notification", status)
	}
	return err
}

func (l *httpLink) end(orderly bool) error {
	defer l.transport.CloseIdleConnections()
	defer l.leave()
	if !orderly || l.session == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(l.life, patience)
	defer cancel()
	status, err := l.send(ctx, http.MethodDelete, nil)
	if err == nil && status >= 300 && status != http.StatusNotFound {
		err = fmt.Errorf("DELETE got HTTP %d", status)
	}
	return err
}
