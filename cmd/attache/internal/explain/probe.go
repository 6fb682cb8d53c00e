package explain

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A probe watches frames between the layers of a chain, and records what happens to those to explain.
type probe struct {
	scrubber
	layers []middleware.Layer
	wanted func(m *wire.Message) bool

	mu   sync.Mutex // frames and replies are handled concurrently
	seen []*trail
}

// A trail records the path of one frame. Index k is the place before layer k, and len(probe.layers) is
// the upstream.
type trail struct {
	method, tool string
	ambiguity    wire.Ambiguity
	frames       [][]byte                // nil if the frame did not pass this place
	replies      [][]byte                // nil if the reply did not pass this place
	notes        map[string][]noteReport // by layer
	view         *sessionstate.Context
}

type trailKey struct{}

// chain returns the layers, with the probe before, between and after them.
func (p *probe) chain() []middleware.Layer {
	out := []middleware.Layer{p.at(0)}
	for i, l := range p.layers {
		out = append(out, l, p.at(i+1))
	}
	return out
}

// at returns the probe's layer before layer k.
func (p *probe) at(k int) middleware.Layer {
	return middleware.Layer{Name: "explain", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if call := middleware.CallFrom(ctx); m.From == wire.Client {
				p.pass(k, call, m)
			}
			return next(ctx, m)
		}
	}}
}

// pass records a client frame at place k.
func (p *probe) pass(k int, call *middleware.Call, m *wire.Message) {
	if k == 0 && p.wanted(m) {
		call.SetValue(trailKey{}, p.newTrail(m))
	}
	t, _ := call.Value(trailKey{}).(*trail)
	if t == nil {
		return
	}
	if k == 0 {
		call.Listen(true, func(_ *middleware.Call, n middleware.Note) { p.note(t, n) })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.frames[k] = bytes.Clone(m.Frame())
	t.view = cmp.Or(sessionstate.ContextOf(call), t.view)
	call.OnReply(func(_ context.Context, reply *wire.Message) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.replies[k] = bytes.Clone(reply.Frame())
		return nil
	})
}

func (p *probe) newTrail(m *wire.Message) *trail {
	t := &trail{
		method: m.Method(), tool: m.Name().Text(), ambiguity: m.Ambiguity(),
		frames: make([][]byte, len(p.layers)+1), replies: make([][]byte, len(p.layers)+1),
		notes: map[string][]noteReport{},
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, t)
	return t
}

// ambiguousCalls adds a trail for each call in m, a line of the client, that no layer will see. names
// are as for look.
func (p *probe) ambiguousCalls(m *wire.Message, names [][]string) {
	switch {
	case m.Kind() == wire.Batch:
		for e := range m.Root().Elements() {
			if member := look(e.Raw, names); member.Kind() != wire.Batch {
				p.ambiguousCalls(member, names)
			}
		}
	case !m.Plain() && m.MethodIs("tools/call"):
		t := p.newTrail(m)
		t.frames[0] = bytes.Clone(m.Frame())
	}
}

func (p *probe) note(t *trail, n middleware.Note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on := "request"
	if slices.ContainsFunc(t.replies, func(reply []byte) bool { return reply != nil }) {
		on = "reply"
	}
	t.notes[n.Layer] = append(t.notes[n.Layer], noteReport{
		Rule: n.Rule, Act: string(n.Act), Why: n.Why, On: on,
		Path:   slices.Clone(n.Path),
		Before: p.member(n.Path, n.Before), After: p.member(n.Path, n.After),
		Source: n.Source,
	})
}

// reached returns the index of the last place that the frame reached.
func (t *trail) reached() int {
	last := 0
	for k, f := range t.frames {
		if f != nil {
			last = k
		}
	}
	return last
}

func (p *probe) explain(t *trail) callReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := callReport{Method: t.method, Tool: t.tool, Frame: p.json(t.frames[0]), Facts: knownFacts(t.view)}
	last := t.reached()
	for k, l := range p.layers {
		x.Layers = append(x.Layers, layerReport{
			Name: l.Name, Reached: k <= last, Notes: t.notes[l.Name],
			Request: p.edited(t.frames, k, k+1), Reply: p.edited(t.replies, k+1, k),
		})
	}
	switch {
	case last == len(p.layers):
		x.Outcome, x.Sent = outcomeGoesOn, p.json(t.frames[last])
		return x
	case t.replies[0] == nil:
		x.Outcome = outcomeDropped
	default:
		x.Outcome, x.Answer, x.Text = outcomeRefused, p.json(t.replies[0]), p.text(wire.ReplyText(wire.Value{Raw: t.replies[0]}))
	}
	x.By = p.layers[last].Name
	return x
}

// edited returns the change to a frame between two places, or nil if it did not change.
func (p *probe) edited(frames [][]byte, from, to int) *editReport {
	if frames[from] == nil || frames[to] == nil || bytes.Equal(frames[from], frames[to]) {
		return nil
	}
	return &editReport{p.json(frames[from]), p.json(frames[to])}
}

// inOrder sorts the trails of a recording in the order of the client's messages. The probe sees a frame
// that waits for an identity later than others.
func inOrder(seen []*trail, s *record.Session) {
	type place struct{ event, offset int } // the offset in the line matters for members of an array
	from := map[*trail]place{}
	used := map[int]bool{} // lines that hold a single frame and are matched; an array holds several
	for _, t := range seen {
		from[t] = place{event: len(s.Events)}
		for i, e := range s.Events {
			if e.At != record.ClientIn || used[i] {
				continue
			}
			offset := bytes.Index(e.Line, t.frames[0])
			if offset < 0 {
				continue
			}
			from[t], used[i] = place{i, offset}, len(bytes.TrimSpace(e.Line)) == len(t.frames[0])
			break
		}
	}
	slices.SortStableFunc(seen, func(a, b *trail) int {
		return cmp.Or(from[a].event-from[b].event, from[a].offset-from[b].offset)
	})
}
