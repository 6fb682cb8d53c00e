package arguments

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/arguments/internal/constraint"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A value is the value of a rule for one call: a fact, or computed JSON.
type value struct {
	member *factMember // nil if the value is not a known fact
	raw    []byte      // nil if the value is not computed
}

// A factMember is the value of a rule's fact in a view, and the argument's JSON. A view never
// changes, so the calls of a session reuse it.
type factMember struct {
	view  *sessionstate.Context
	fact  sessionstate.Fact
	text  []byte // as added after other members: ,"workspace":"/src/shop"
	start int    // of the value in text
}

// read sets k to the value of r's fact in a view, and returns it, nil if the fact is unknown.
func (r *rule) read(view *sessionstate.Context, k *factMember) *factMember {
	// The text has the form that it has in a frame, so a fill of a fact need not escape it again.
	if k.view != view || k.text == nil { // the text is nil before the first use, when view may be nil too
		k.view = view
		k.fact, _ = view.Lookup(r.fact)
		k.text = r.appendName(k.text[:0])
		k.start = len(k.text)
		k.text = wire.AppendQuote(k.text, k.fact.Value)
	}
	if k.fact.Empty() {
		return nil
	}
	return k
}

// appendName appends a comma, the name of r's argument and a colon.
func (r *rule) appendName(dst []byte) []byte {
	return append(wire.AppendQuote(append(dst, ','), r.last()), ':')
}

// fact returns the fact, the zero Fact if the value is not a fact.
func (v *value) fact() sessionstate.Fact {
	if v.member == nil {
		return sessionstate.Fact{}
	}
	return v.member.fact
}

func (v *value) empty() bool {
	if v.raw == nil {
		return v.member == nil
	}
	switch string(v.raw) {
	// See Rule.Value. An empty object is a value.
	case "null", `""`, "[]":
		return true
	}
	return false
}

// isAnnounced reports whether the value is a fact that the client itself sent.
func (v *value) isAnnounced() bool {
	source := v.fact().Source
	return source == sessionstate.RequestMeta || source == sessionstate.InitializeMeta
}

// json returns the value, which must not be empty, as JSON.
func (v *value) json() []byte {
	if v.raw != nil {
		return v.raw
	}
	return v.member.text[v.member.start:]
}

// text returns the value, which must not be empty, if it is a string.
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

// constrained returns the value, which must not be empty, for package constraint.
func (v *value) constrained() constraint.Value {
	text, ok := v.text()
	return constraint.Value{JSON: v.json(), Text: text, IsText: ok}
}

func (v *value) equals(other wire.Value) bool {
	// Computed JSON is compared as bytes: 1 and 1.0 may be two values for a server.
	if v.raw != nil {
		return bytes.Equal(v.raw, other.Raw)
	}
	return other.Equals(v.fact().Value)
}

// String returns the value for a log line.
func (v *value) String() string {
	if v.raw != nil {
		return middleware.Clip(string(v.raw))
	}
	return middleware.Clip(v.fact().Value)
}

// source returns the fact and the origin of the value, for notes.
func (in *intent) source() string {
	if in.value.fact().Empty() {
		return in.rule.Value.String()
	}
	return in.rule.fact + " from " + in.origin()
}

// origin returns the origin of the value, for log lines.
func (in *intent) origin() string {
	fact := in.value.fact()
	if fact.Empty() {
		return in.rule.Value.String()
	}
	return cmp.Or(fact.From, fact.Source.String())
}

// sessionValue returns the value of a rule that does not read arguments. It is empty if it cannot
// be computed.
func (r *rule) sessionValue(in *expression.Inputs) (v value) {
	if r.fact != "" {
		v.member = r.read(in.Context, new(factMember))
	} else {
		v.raw, _ = r.compute(in)
	}
	return v
}

// compute returns the value of a rule whose value is not a fact. It is nil if the value is made of a
// fact that is not known, or reads the principal and nobody is identified or the credential was
// refused.
func (r *rule) compute(in *expression.Inputs) ([]byte, error) {
	// An expression could make a value of nobody's empty facts, such as "user-".
	if r.Value.ReadsPrincipal() && (in.Context == nil || in.Context.Principal == nil || in.Context.Unidentified != nil) {
		return nil, nil
	}
	v, err := r.Value.Eval(in)
	if errors.Is(err, expression.ErrUnknown) {
		return nil, nil
	}
	return v.JSON, err
}
