package arguments

import (
	"bytes"
	"log/slog"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A value is the value of a rule for one call: a fact, or computed JSON.
type value struct {
	known *reading // of a fact that is there; nil if there is none
	raw   []byte
}

// A reading is the fact that is a rule's value, as a view has it. A view never
// changes, so that the calls of one session share a reading.
type reading struct {
	view   *sessionstate.Context
	fact   sessionstate.Fact
	member []byte // the argument as it is added behind others: ,"workspace":"/src/shop"
	start  int    // of the value in member
}

// read returns the reading of r's fact in a view, nil if the fact is not known. It
// is valid until the next.
func (r *rule) read(view *sessionstate.Context, k *reading) *reading {
	if k.view != view || k.member == nil {
		k.view = view
		k.fact, _ = view.Lookup(r.fact)
		k.member = r.appendName(k.member[:0])
		k.start = len(k.member)
		k.member = wire.AppendQuote(k.member, k.fact.Value)
	}
	if k.fact.Empty() {
		return nil
	}
	return k
}

// appendName appends what stands before the value of r's argument that is added
// behind others.
func (r *rule) appendName(dst []byte) []byte {
	return append(wire.AppendQuote(append(dst, ','), r.last()), ':')
}

// fact returns the fact that the value is, an empty one if it is none.
func (v *value) fact() sessionstate.Fact {
	if v.known == nil {
		return sessionstate.Fact{}
	}
	return v.known.fact
}

// empty reports whether there is no value.
func (v *value) empty() bool {
	if v.raw == nil {
		return v.known == nil
	}
	switch string(v.raw) {
	case "null", `""`, "[]":
		return true
	}
	return false
}

// isAnnounced reports whether the value is a fact that the client itself has said.
func (v *value) isAnnounced() bool {
	source := v.fact().Source
	return source == sessionstate.RequestMeta || source == sessionstate.InitializeMeta
}

// json returns a value that is not empty as JSON.
func (v *value) json() []byte {
	if v.raw != nil {
		return v.raw
	}
	return v.known.member[v.known.start:]
}

// text returns a value that is not empty if it is a text.
func (v *value) text() (text string, ok bool) {
	if v.raw == nil {
		return v.fact().Value, true
	}
	raw := wire.Value{Raw: v.raw}
	if !raw.IsString() {
		return "", false
	}
	return raw.Text(), true
}

// is reports whether other is this value.
func (v *value) is(other wire.Value) bool {
	if v.raw != nil {
		return bytes.Equal(v.raw, other.Raw)
	}
	return other.Equals(v.fact().Value)
}

// String returns the value as a log line takes it.
func (v *value) String() string {
	if v.raw != nil {
		return middleware.Clip(string(v.raw))
	}
	return middleware.Clip(v.fact().Value)
}

// source says where the value of an intent comes from, for notes.
func (in *intent) source() string {
	if in.value.fact().Empty() {
		return in.rule.Value.String()
	}
	return in.rule.fact + " from " + in.origin()
}

// origin says who the value of an intent is from.
func (in *intent) origin() string {
	switch fact := in.value.fact(); {
	case fact.Empty():
		return in.rule.Value.String()
	case fact.From == "":
		return fact.Source.String()
	default:
		return fact.From
	}
}

// evaluate computes the value of an intent for this call. A value that cannot be computed counts
// as none.
func (c *Conn) evaluate(tc *toolCall, in *intent) {
	r := in.rule
	if r.fact != "" {
		in.value.known = r.read(tc.view, &c.readings[r.index])
		return
	}
	if r.Value == nil {
		return
	}
	raw, err := r.compute(c.inputs(tc))
	if err != nil {
		c.once(event{kind: "uncomputed", rule: r}, slog.LevelWarn, "the value of an argument could not be computed",
			"argument", r.path, "value", r.Value.String(), "err", err)
	}
	in.value.raw = raw
}

// compute returns the value of a rule whose value is no fact. One that reads the
// principal while there is none has none.
func (r *rule) compute(in *expression.Inputs) ([]byte, error) {
	if r.Value.ReadsPrincipal() && (in.Context == nil || in.Context.Principal == nil) {
		return nil, nil
	}
	v, err := r.Value.Eval(in)
	return v.JSON, err
}

// inputs returns what expressions read of the call. They are made once for each
// judgement, and only if a rule has an expression.
func (c *Conn) inputs(tc *toolCall) *expression.Inputs {
	if !c.reading {
		c.reading = true
		c.in.Context, c.in.Tool, c.in.Server = tc.view, tc.name, c.o.Server
		c.in.Arguments = tc.m.Arguments().Raw
		if tc.plan != nil {
			c.in.Annotations = tc.plan.tool.Annotations
		}
	}
	return &c.in
}
