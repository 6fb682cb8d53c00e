package arguments

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/arguments/internal/constraint"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// editList returns the hook that edits the schemas of a page of tools/list to agree with the
// rules.
func (c *Conn) editList(view *sessionstate.Context) middleware.ReplyHook {
	return func(ctx context.Context, reply *wire.Message) error {
		result := reply.Get("result")
		list := result.Get("tools")
		// Readers could see different lists in a reply that is not plain. The rules still judge the
		// calls.
		if !list.IsArray() || !reply.Plain() {
			return nil
		}
		call := middleware.CallFrom(ctx)
		// The catalogue, an inner layer, has learned this page already.
		e := listEdit{c: c, call: call, view: view, edited: make([]int, len(c.rules)), ownWorkspaces: c.ownWorkspaces()}
		index := 0
		for entry := range list.Elements() {
			e.tool(index, entry)
			index++
		}
		// The list is private even if nothing was edited, because another session may get another list.
		e.splices = middleware.LimitCaching(e.splices, call, layerName, result, e.private, view != nil && view.Modern)
		if err := reply.Apply(e.splices...); err != nil {
			return err
		}
		for _, n := range e.notes {
			call.Note(n)
		}
		c.logEdited(call, e.edited)
		return nil
	}
}

// A listEdit collects the edits of one page of tools/list.
type listEdit struct {
	c             *Conn
	call          *middleware.Call
	view          *sessionstate.Context
	splices       []wire.Splice
	notes         []middleware.Note
	edited        []int // the number of tools that a rule has edited, by the rule's index
	ownWorkspaces bool  // the server makes workspaces
	private       bool  // the list depends on the session, so caches must not share it
}

// tool edits the schema of one tool. The edits of one rule are made together or not at all.
func (e *listEdit) tool(index int, entry wire.Value) {
	schema := entry.Get("inputSchema")
	if !schema.IsObject() {
		return
	}
	t := &middleware.Tool{Name: entry.Get("name").Text(), InputSchema: schema.Raw}
	if known, _ := e.c.catalog.Tool(t.Name); known != nil {
		t.Annotations = known.Annotations
	}
	text := schema.Raw                      // with the edits of the rules so far
	decided := map[int]bool{}               // by slot
	plan := e.c.newPlan(t, e.ownWorkspaces) // Conn.plans belongs to the client's direction
	for i := range plan.places {
		p := &plan.places[i]
		r := p.rule
		if decided[r.slot] || !e.applies(r, t) {
			continue
		}
		// As in eachRule, the rule has decided even if it leaves the schema alone.
		decided[r.slot] = true
		if !e.edits(p, t) {
			continue
		}
		next := r.editSchema(text)
		if bytes.Equal(next, text) {
			continue
		}
		if e.edited[r.index]++; e.call.Noted() {
			e.notes = append(e.notes, middleware.Note{Layer: layerName, Rule: r.Name, Act: middleware.Edited,
				Why: "the schema agrees with the rule", Path: []string{"result", "tools", strconv.Itoa(index), "inputSchema"},
				Before: text, After: next, Source: "the rule"})
		}
		// A fill makes the argument optional only for a session that has a value.
		e.private = e.private || r.Mode == Fill && r.Value.UsesSession()
		text = next
	}
	if !bytes.Equal(text, schema.Raw) {
		e.splices = append(e.splices, wire.Splice{Off: schema.Off, Len: len(schema.Raw), Text: text})
	}
}

// applies reports whether the rule applies to all calls of the tool, regardless of their
// arguments.
func (e *listEdit) applies(r *rule, t *middleware.Tool) bool {
	if r.When == nil {
		return true
	}
	e.private = e.private || r.When.UsesSession() // also if it does not hold
	// It depends on the call whether the rule applies, and the schema is the same for all calls.
	if r.When.UsesArguments() {
		return false
	}
	holds, err := r.When.Holds(e.inputs(t))
	return err == nil && holds
}

func (e *listEdit) inputs(t *middleware.Tool) *expression.Inputs {
	return &expression.Inputs{Context: e.view, Tool: t.Name, Annotations: t.Annotations, Server: e.c.o.Server}
}

// edits reports whether the rule edits the schema at this place. If it should but cannot, edits
// logs a warning.
func (e *listEdit) edits(p *place, t *middleware.Tool) bool {
	r := p.rule
	switch {
	case p.state == absent || r.PathOnly && e.passesOver(p, t):
		return false
	case p.state == unclear:
		e.c.logUnclear(t.Name, r, p.why)
		return false
	case r.Schema == Keep:
		return false
	// For a session without a value the model must go on giving the argument.
	case r.Mode == Fill:
		return e.hasValue(p, t)
	case r.Mode == Pin && !p.parentsRequired && !p.parentsMinimal:
		// The edited schema would allow a call without the object around the argument.
		// The pin would add that object to the call, without the other members that it
		// requires.
		e.c.logUnclear(t.Name, r, "required")
		return false
	}
	return true
}

// passesOver reports whether the built-in rule does not apply to the argument.
func (e *listEdit) passesOver(p *place, t *middleware.Tool) bool {
	if p.state == present && p.verdict.Path {
		return !p.required || !p.parentsRequired
	}
	e.c.logPassedOver(t.Name, p)
	return true
}

// hasValue reports whether a fill rule has a value for this session that the argument accepts,
// or may have one when a call arrives and the argument accepts any value.
func (e *listEdit) hasValue(p *place, t *middleware.Tool) bool {
	acceptsAny := p.acceptsAny() && p.limit == nil
	if p.rule.Value.UsesArguments() {
		return acceptsAny && !p.property.HasKeyword("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
	}
	v := p.rule.sessionValue(e.inputs(t))
	if v.empty() {
		return p.rule.fact == workspacePath && e.c.canAsk(e.call) && acceptsAny
	}
	return p.misfit(&v) == ""
}

// editSchema returns the schema of a tool, edited for the rule. The objects around the argument
// must be plain.
func (r *rule) editSchema(schema []byte) []byte {
	at := wire.Value{Raw: schema}
	for _, key := range r.Argument[:len(r.Argument)-1] {
		at = at.Get("properties", key)
	}
	var edits []wire.Splice
	if r.Schema == Hide {
		edits = wire.RemoveMembers(at.Get("properties"), func(m wire.Member) bool { return m.Key.Equals(r.last()) })
	}
	required := at.Get("required")
	switch {
	case !constraint.Contains(required, r.last()):
	case constraint.ContainsOnly(required, r.last()):
		// An empty "required" is an error in older dialects.
		edits = append(edits, wire.RemoveMembers(at, func(m wire.Member) bool { return m.Key.Equals("required") })...)
	default:
		edits = append(edits, wire.RemoveElements(required, func(v wire.Value) bool { return v.Equals(r.last()) })...)
	}
	return splice(schema, edits)
}

// splice returns text with the edits, which must not overlap.
func splice(text []byte, edits []wire.Splice) (out []byte) {
	slices.SortStableFunc(edits, func(x, y wire.Splice) int { return cmp.Compare(x.Off, y.Off) })
	from := 0
	for _, e := range edits {
		out = append(append(out, text[from:e.Off]...), e.Text...)
		from = e.Off + e.Len
	}
	return append(out, text[from:]...)
}

// logEdited logs the number of tools that each rule has edited in a list.
func (c *Conn) logEdited(call *middleware.Call, edited []int) {
	for i, n := range edited {
		if n == 0 {
			continue
		}
		r := c.rules[i]
		c.log.Log(call.LogContext(), c.level(event{kind: "shown", rule: r}), "edited the schemas in tools/list",
			"argument", r.path, "tools", n, "shown", string(r.Schema))
	}
}

// logUnclear warns once about a tool that is shown unchanged although a rule should edit it.
func (c *Conn) logUnclear(tool string, r *rule, keyword string) {
	effect := "the argument is not filled"
	if r.enforces() {
		effect = "the rule still applies to calls"
	}
	c.once(event{"unclear", tool, r}, slog.LevelWarn, "a tool is shown as it is, because its schema has more than plain objects around an argument",
		"tool", middleware.Clip(tool), "argument", r.path, "keyword", keyword, "effect", effect)
}

// logPassedOver logs once for each tool why the built-in rule does not apply to its argument.
func (c *Conn) logPassedOver(tool string, p *place) {
	if !c.log.Enabled(context.Background(), slog.LevelDebug) { // called for each call
		return
	}
	why, words := p.verdict.Why, p.verdict.Words
	if p.state == unclear {
		why, words = "a keyword constrains the object around it", p.why
	}
	c.once(event{"passed over", tool, p.rule}, slog.LevelDebug, "the built-in rule leaves an argument alone",
		"tool", middleware.Clip(tool), "argument", p.rule.path, "why", why, "words", words)
}
