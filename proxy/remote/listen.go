package remote

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptrace"
	"time"

	"github.com/attache-mcp/attache/proxy/remote/internal/eventstream"
)

const (
	// firstPause and longestPause bound the time before the stream is opened again.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// steadyTime is how long a stream must last for the pauses to start again at firstPause.
	steadyTime = 10 * time.Second
	// openTime is how long the next message waits for the answer to the GET.
	openTime = 2 * time.Second
	// unkept begins the ids of GET streams of attache serve, of which it keeps no events.
	unkept = "get."
)

// listen opens the GET stream for a session and closes that of the session before. On it, a server of a
// legacy revision sends messages that belong to no request (2025-11-25, basic/transports, "Listening for
// Messages from the Server"); 2026-07-28 has no such stream. listen returns when the server has answered,
// or openTime after the request was written, and if it cannot be written, after settleTime. Servers drop
// what they send on a stream that is not open yet, so a call that reached them earlier could wait forever.
func (s *Server) listen(t ticket) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.replaceStream(cancel)
	// opening is also done if the session ends first.
	opening, answered := context.WithCancel(ctx)
	go s.readMessages(ctx, t, answered)
	select {
	case <-opening.Done():
	case <-time.After(settleTime):
	}
}

// replaceStream closes the GET stream, if there is one. closeNew closes the stream that is opened in its
// place; it is nil if none is.
func (s *Server) replaceStream(closeNew context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closeStream != nil {
		s.closeStream()
	}
	s.closeStream = closeNew
}

// readMessages keeps the stream open as long as the server offers it. It calls answered when listen need
// not wait any longer. The exchange has no request, so every reply on the stream goes to the client, but
// for those on a resumed stream, which other streams have too.
func (s *Server) readMessages(ctx context.Context, t ticket, answered func()) {
	defer answered()
	// Without a cancel, which only an exchange with a request needs.
	x := &exchange{s: s, ctx: ctx, ticket: t}
	taker := &eventReader{x: x}
	taker.f.Out = s.out
	p := eventstream.New(taker)
	opened := false
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		began, n := time.Now(), taker.n
		if !x.readStream(taker, p, &opened, answered) {
			return
		}
		if time.Since(began) >= steadyTime || taker.n > n {
			pause = firstPause
		}
		// longestPause bounds what a server demands, too.
		if p.Retry > pause {
			pause = min(p.Retry, longestPause)
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// readStream opens the stream and reads it to its end. It reports false if another attempt is useless.
func (x *exchange) readStream(taker *eventReader, p *eventstream.Parser, opened *bool, answered func()) bool {
	s, ctx := x.s, x.ctx
	h := http.Header{"Accept": {"text/event-stream"}}
	x.ticket.headers(h)
	if len(p.ID) > 0 {
		h["Last-Event-Id"] = []string{string(p.ID)}
	}
	// The time does not run from the beginning of send, which may have to connect first, or wait for a credential.
	asked := func(httptrace.WroteRequestInfo) { time.AfterFunc(openTime, answered) }
	resp, err := s.send(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: asked}), http.MethodGet, h, nil)
	answered()
	// Without the stream the session works, so nobody is told.
	if err != nil {
		s.log.Debug("the stream of the remote server could not be opened", "why", err)
		return ctx.Err() == nil
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK && isEvents(resp.Header):
	case resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented, resp.StatusCode == http.StatusTooManyRequests,
		*opened && resp.StatusCode == http.StatusUnauthorized, // the credential may be renewed
		*opened && resp.StatusCode == http.StatusConflict:     // the server may not have noticed that the last stream broke
		drain(resp)
		return true
	default:
		// The first GET may get 404 or 400 from a server that has no stream, so only a later one shows that
		// the session is lost.
		if r := readRefusal(resp); *opened && r.lostSession(x.ticket) {
			s.lose(r)
		}
		s.log.Debug("the remote server offers no stream of its own", "status", resp.StatusCode)
		return false
	}
	body, err := decoded(resp)
	if err != nil {
		return false
	}
	// A server without ids does not repeat what it has sent, nor does attache serve on this stream.
	*opened, x.resumed = true, len(p.ID) > 0 && !bytes.HasPrefix(p.ID, []byte(unkept))
	p.Restart()
	err = each(&taker.f, body, p.Feed)
	taker.lastEvent(p, err)
	return ctx.Err() == nil
}
