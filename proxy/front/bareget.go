package front

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/bare"
)

// A bareGet is a GET stream on a bare connection. It has a goroutine only while there is something
// to write; the stream starts it.
type bareGet struct {
	s        *session
	t        *stream
	w        *writer
	response *bare.Response
	wakes    atomic.Int64 // that were not handled; not 0 while a goroutine writes
	ended    sync.Once
}

// serveBare begins a GET stream with the events first. It ends with the session, or when the client disconnects.
func (f *Front) serveBare(response *bare.Response, s *session, t *stream, first []byte) {
	// Without the request, which would stay in memory for as long as the stream is open.
	x := &exchange{f: f, w: response, rc: *http.NewResponseController(response), accept: accept.Accept{Events: true}}
	g := &bareGet{s: s, t: t, w: &writer{x: x, t: &t.Stream, again: first}, response: response}
	g.wakes.Store(1) // so that wake starts no other goroutine meanwhile
	f.streams.Begin()
	f.pulse.Join(&t.Stream)
	t.Notify(g.wake)
	response.Watch(g.end)
	if g.w.begin() != nil {
		g.end()
		return
	}
	g.write()
}

// wake starts a goroutine that writes what is queued, unless one is running.
func (g *bareGet) wake() {
	if g.wakes.Add(1) == 1 {
		go g.write()
	}
}

// write writes what is queued until nothing is left.
func (g *bareGet) write() {
	for left := int64(1); left > 0; {
		n := g.wakes.Load()
		_, closed, err := g.w.writeNext(nil)
		// In good order: the client sees the end of the body, not a broken connection.
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

func (g *bareGet) end() {
	// The session, the client and a failed write may end the stream at the same time.
	g.ended.Do(func() {
		g.t.Abandon()
		g.s.f.pulse.Leave(&g.t.Stream)
		g.s.detach(g.t)
		g.response.Close()
		g.s.release()
		g.s.f.streams.End()
	})
}
