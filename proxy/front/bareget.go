package front

import (
	"net/http"
	"sync"

	"github.com/attache-mcp/attache/proxy/front/internal/accept"
	"github.com/attache-mcp/attache/proxy/front/internal/bare"
)

// A bareGet is a GET stream on a bare connection. While nothing is to be written no goroutine
// waits for it: the stream starts one.
type bareGet struct {
	s        *session
	t        *stream
	w        *writer
	response *bare.Response
	ended    sync.Once

	mu      sync.Mutex
	writing bool // a goroutine writes
	more    bool // and there is more for it
}

// serveBare begins a GET stream, which ends with the session, or when its client leaves.
func (f *Front) serveBare(response *bare.Response, s *session, t *stream) {
	x := &exchange{f: f, w: response, rc: *http.NewResponseController(response), accept: accept.Accept{Events: true}}
	g := &bareGet{s: s, t: t, w: &writer{x: x}, response: response, writing: true}
	f.streams.Begin()
	t.join(&f.pulse)
	t.mu.Lock()
	t.woken = g.wake
	t.mu.Unlock()
	response.Watch(g.end)
	if g.w.begin() != nil {
		g.end()
		return
	}
	g.write()
}

// wake has somebody write what is on the stream.
func (g *bareGet) wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.writing {
		g.more = true
		return
	}
	g.writing = true
	go g.write()
}

// write writes what is on the stream.
func (g *bareGet) write() {
	for {
		_, closed, err := g.w.next(g.t, nil)
		if closed && err == nil {
			g.response.End()
		}
		if closed || err != nil {
			g.end()
			return
		}
		if !g.again() {
			return
		}
	}
}

// again reports whether there is more to write. If not, another goroutine may begin.
func (g *bareGet) again() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.w.events = nil // an idle stream holds no buffer
	g.writing, g.more = g.more, false
	return g.writing
}

// end ends the stream.
func (g *bareGet) end() {
	g.ended.Do(func() {
		g.t.leave()
		g.s.f.pulse.Remove(&g.t.member)
		g.s.detach(g.t)
		g.response.Close()
		g.s.release()
		g.s.f.streams.End()
	})
}
