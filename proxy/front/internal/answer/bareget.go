package answer

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/bare"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
)

// A bareGet is a GET stream on a bare connection. Apart from the goroutine of Response.Watch, it has a
// goroutine only while there is something to write; the stream starts that goroutine. Such streams are open for
// hours, and the goroutine and the buffers of net/http would be a large part of the memory of an idle session.
type bareGet struct {
	w        Writer
	response *bare.Response
	pulse    *outbox.Pulse
	closed   func()
	wakes    atomic.Int64 // wakes that were not handled; not 0 while a goroutine writes
	ended    sync.Once
}

// ServeBare begins a GET stream, writes the events in first, and returns. The stream ends when it is closed, or when
// the client disconnects; then closed is called, once. Until then t and the goroutine of Response.Watch refer to the
// bareGet.
func ServeBare(response *bare.Response, t *outbox.Stream, first []byte, pulse *outbox.Pulse, closed func()) {
	g := &bareGet{response: response, pulse: pulse, closed: closed, w: Writer{
		Response: response, Control: *http.NewResponseController(response),
		Accept: accept.Accept{Events: true}, Stream: t, Prefix: first,
	}}
	g.wakes.Store(1) // so that wake starts no other goroutine meanwhile
	pulse.Join(t)
	t.Notify(g.wake)
	response.Watch(g.end)
	if g.w.begin() != nil {
		g.end()
		return
	}
	g.write()
}

// wake starts a goroutine that writes the queued items, unless one is running. The stream calls wake with its mutex
// locked, so wake must not write.
func (g *bareGet) wake() {
	if g.wakes.Add(1) == 1 {
		go g.write()
	}
}

// write writes the queued items until none is left. It subtracts the wakes that it has handled. If wakes is then 0,
// write returns, and the next wake starts another goroutine. Otherwise write looks again.
func (g *bareGet) write() {
	for left := int64(1); left > 0; {
		n := g.wakes.Load()
		_, closed, err := g.w.writeNext(nil)
		// End the body, so that the client does not see a broken connection.
		if closed && err == nil {
			g.response.End()
		}
		if closed || err != nil {
			g.end()
			return
		}
		g.w.events = nil // an idle stream holds no buffer
		left = g.wakes.Add(-n)
	}
}

// end ends the stream. The stream is abandoned first, so that nothing more is queued for a closed response.
func (g *bareGet) end() {
	// The session, the client and a failed write may end the stream at the same time.
	g.ended.Do(func() {
		g.w.Stream.Abandon()
		g.pulse.Leave(g.w.Stream)
		g.response.Close()
		g.closed()
	})
}
