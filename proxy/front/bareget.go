package front

import (
	"net/http"
	"sync"

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
	ended    sync.Once

	mu      sync.Mutex
	writing bool // a goroutine is writing
	more    bool // something was queued since it looked
}

// serveBare begins a GET stream. It ends with the session, or when the client disconnects.
func (f *Front) serveBare(response *bare.Response, s *session, t *stream) {
	// Without the request, which would stay in memory for as long as the stream is open.
	x := &exchange{f: f, w: response, rc: *http.NewResponseController(response), accept: accept.Accept{Events: true}}
	g := &bareGet{s: s, t: t, w: &writer{x: x}, response: response, writing: true}
	f.streams.Begin()
	t.Join(&f.pulse)
	t.Notify(g.wake)
	response.Watch(g.end)
	// writing is true since the beginning, so that wake starts no other goroutine meanwhile.
	if g.w.begin() != nil {
		g.end()
		return
	}
	g.write()
}

// wake starts a goroutine that writes what is queued, unless one is running.
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

// write writes what is queued until nothing is left.
func (g *bareGet) write() {
	for {
		_, closed, err := g.w.writeNext(g.t, nil)
		// In good order: the client sees the end of the body, not a broken connection.
		if closed && err == nil {
			g.response.End()
		}
		if closed || err != nil {
			g.end()
			return
		}
		if !g.moreToWrite() {
			return
		}
	}
}

// moreToWrite reports whether more was queued. If not, the writing goroutine must return.
func (g *bareGet) moreToWrite() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.w.events = nil // an idle stream holds no buffer
	g.writing, g.more = g.more, false
	return g.writing
}

// end ends the stream.
func (g *bareGet) end() {
	// The session, the client and a failed write may end the stream at the same time.
	g.ended.Do(func() {
		g.t.Abandon()
		g.t.Leave(&g.s.f.pulse)
		g.s.detach(g.t)
		g.response.Close()
		g.s.release()
		g.s.f.streams.End()
	})
}
