package explain

import (
	"bytes"
	"context"
	"sync"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// A probe watches between the layers of a chain, and keeps what happens to the frames to
// explain.
type probe struct {
	scrubber
	layers []middleware.Layer
	wanted func(m *wire.Message) bool

	mu   sync.Mutex // frames and replies are handled at the same time
	seen []*trail
}

// A trail is the path of one frame. Index k stands for the place in front of layer k;
// len(probe.layers) is the upstream.
type trail struct {
	method, tool string
	ambiguity    wire.Ambiguity
	frames       [][]byte // nil where the frame did not come by
	replies      [][]byte // as the reply came by on its way back
	notes        []noteReport
	noteLayers   []string // of the note with that index
	view         *sessionstate.Context
}

type trailKey struct{}

// chain returns the layers with the probe in front of, between and behind them.
func (p *probe) chain() []middleware.Layer {
	out := []middleware.Layer{p.at(0)}
	for i, l := range p.layers {
		out = append(out, l, p.at(i+1))
	}
	return out
}

// at returns the probe in front of layer k.
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

// pass notes that a frame of the client passes.
func (p *probe) pass(k int, call *middleware.Call, m *wire.Message) {
	if k == 0 && p.wanted(m) {
		call.SetValue(trailKey{}, p.begin(m))
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
	if view, ok := call.Value(sessionstate.ContextKey{}).(*sessionstate.Context); ok {
		t.view = view
	}
	call.OnReply(func(_ context.Context, reply *wire.Message) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		t.replies[k] = bytes.Clone(reply.Frame())
		return nil
	})
}

func (p *probe) begin(m *wire.Message) *trail {
	t := &trail{
		method: m.Method(), tool: m.Name().Text(), ambiguity: m.Ambiguity(),
		frames: make([][]byte, len(p.layers)+1), replies: make([][]byte, len(p.layers)+1),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, t)
	return t
}

// ambiguous keeps a frame that no layer will see.
func (p *probe) ambiguous(m *wire.Message) {
	t := p.begin(m)
	t.frames[0] = bytes.Clone(m.Frame())
}

func (p *probe) note(t *trail, n middleware.Note) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on := "request"
	for _, r := range t.replies {
		if r != nil {
			on = "reply"
		}
	}
	t.noteLayers = append(t.noteLayers, n.Layer)
	t.notes = append(t.notes, noteReport{
		Rule: n.Rule, Act: string(n.Act), Why: n.Why, On: on,
		Path:   append([]string(nil), n.Path...),
		Before: p.member(n.Path, n.Before), After: p.member(n.Path, n.After),
		Source: n.Source,
	})
}

// reached returns the index of the last place that the frame has reached.
func (t *trail) reached() int {
	last := 0
	for k, f := range t.frames {
		if f != nil {
			last = k
		}
	}
	return last
}

// explain makes the report of a trail.
func (p *probe) explain(t *trail) callReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := callReport{Method: t.method, Tool: t.tool, Frame: p.json(t.frames[0]), Facts: knownFacts(t.view)}
	last := t.reached()
	for k, l := range p.layers {
		part := layerReport{Name: l.Name, Reached: k <= last, Request: p.edited(t.frames, k, k+1), Reply: p.edited(t.replies, k+1, k)}
		for i, layer := range t.noteLayers {
			if layer == l.Name {
				part.Notes = append(part.Notes, t.notes[i])
			}
		}
		x.Layers = append(x.Layers, part)
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

// edited returns how a frame changed between two places, nil if it did not.
func (p *probe) edited(frames [][]byte, from, to int) *editReport {
	if frames[from] == nil || frames[to] == nil || bytes.Equal(frames[from], frames[to]) {
		return nil
	}
	return &editReport{p.json(frames[from]), p.json(frames[to])}
}
