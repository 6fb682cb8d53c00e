package arguments

import (
	"slices"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A tool is what the upstream's schema says of the arguments of the rules. The
// nil tool is one nothing is known of.
type tool struct {
	has      []*rule // rules whose argument the schema has
	required []*rule // of those, the ones it requires
}

// admit returns the gaps the schema has a place for.
func (t *tool) admit(gaps []gap) []gap {
	return slices.DeleteFunc(gaps, func(g gap) bool { return t == nil || !slices.Contains(t.has, g.rule) })
}

// unknown returns what is left of the gaps of a tool whose schema is not known:
// nothing is filled, and only what the operator said is required is missed.
func unknown(gaps []gap) []gap {
	return slices.DeleteFunc(gaps, func(g gap) bool {
		return !g.fact.Empty() || g.rule.Required == nil || !*g.rule.Required
	})
}

// missing returns the rule of the first gap that must be filled and cannot be.
func (t *tool) missing(gaps []gap) *rule {
	for _, g := range gaps {
		if !g.fact.Empty() {
			continue
		}
		required := t != nil && slices.Contains(t.required, g.rule)
		if g.rule.Required != nil {
			required = *g.rule.Required
		}
		if required {
			return g.rule
		}
	}
	return nil
}

// read learns what one entry of tools/list says.
func (a *Arguments) read(entry wire.Value) (name string, t *tool) {
	name, t = entry.Get("name").Text(), &tool{}
	schema := entry.Get("inputSchema")
	for _, r := range a.rulesFor(name) {
		at := at(schema, r.Argument)
		if !takesString(property(at, r.last())) {
			continue
		}
		t.has = append(t.has, r)
		if requires(at, r.last()) {
			t.required = append(t.required, r)
		}
	}
	return name, t
}

// takesString reports whether a property is there and can be any string. What is
// filled is one: an integer, or a choice among words, is not ours to give.
func takesString(property wire.Value) bool {
	if !property.Exists() || property.Get("enum").Exists() || property.Get("const").Exists() {
		return false
	}
	kind := property.Get("type")
	if !kind.IsArray() {
		return !kind.Exists() || kind.Equals("string")
	}
	for k := range kind.Elements() {
		if k.Equals("string") {
			return true
		}
	}
	return false
}

// rulesFor returns the rules for a tool, one for each argument.
func (a *Arguments) rulesFor(name string) []*rule {
	var out []*rule
	for i := range a.rules {
		r := &a.rules[i]
		same := func(q *rule) bool { return q.path == r.path }
		if r.names(name) && !slices.ContainsFunc(out, same) {
			out = append(out, r)
		}
	}
	return out
}

func (r *rule) last() string { return r.Argument[len(r.Argument)-1] }

// at returns the schema of the object that holds the argument.
func at(schema wire.Value, path []string) wire.Value {
	for _, key := range path[:len(path)-1] {
		schema = property(schema, key)
	}
	return schema
}

// property returns the schema of a property, wherever among the subschemas that
// apply to the same object it stands.
func property(schema wire.Value, key string) wire.Value {
	var found wire.Value
	inPlace(schema, 0, func(s wire.Value) {
		if p := s.Get("properties", key); p.Exists() && !found.Exists() {
			found = p
		}
	})
	return found
}

func requires(schema wire.Value, key string) bool {
	found := false
	inPlace(schema, 0, func(s wire.Value) {
		for e := range s.Get("required").Elements() {
			found = found || e.Equals(key)
		}
	})
	return found
}

// inPlace visits a schema and the subschemas that apply to the same object
// (JSON Schema 2020-12, core, 10.2). Their depth is bounded, as they are the
// upstream's to nest.
func inPlace(schema wire.Value, depth int, visit func(wire.Value)) {
	if !schema.IsObject() || depth > 8 {
		return
	}
	visit(schema)
	for m := range schema.Members() {
		switch m.Key.Text() {
		case "allOf", "anyOf", "oneOf":
			for e := range m.Value.Elements() {
				inPlace(e, depth+1, visit)
			}
		case "if", "then", "else":
			inPlace(m.Value, depth+1, visit)
		}
	}
}

// show learns the tools of a page of tools/list and edits their schemas.
func (a *Arguments) show(reply *wire.Message, first bool) error {
	list := reply.Get("result", "tools")
	if !list.IsArray() || !reply.Plain() {
		return nil
	}
	page := map[string]*tool{}
	var edits []wire.Splice
	for entry := range list.Elements() {
		name, t := a.read(entry)
		page[name] = t
		edits = append(edits, t.edits(entry.Get("inputSchema"))...)
	}
	a.learn(page, first, !reply.Get("result", "nextCursor").Exists())
	return reply.Apply(edits...)
}

// edits returns the splices that make the schema agree with the rules.
func (t *tool) edits(schema wire.Value) []wire.Splice {
	var edits []wire.Splice
	done := map[int]bool{} // schemas edited, by offset
	for _, r := range t.has {
		if r.Schema == Keep {
			continue
		}
		inPlace(at(schema, r.Argument), 0, func(s wire.Value) {
			if !done[s.Off] {
				done[s.Off] = true
				edits = append(edits, t.editObject(schema, s)...)
			}
		})
	}
	return edits
}

// editObject edits one object's schema for every rule that has an argument in
// it, at once: neighbours that both go share a comma.
func (t *tool) editObject(root, s wire.Value) []wire.Splice {
	concerns := func(key string, mode func(Schema) bool) bool {
		return slices.ContainsFunc(t.has, func(r *rule) bool {
			return r.last() == key && mode(r.Schema) && within(at(root, r.Argument), s)
		})
	}
	dropRequired := func(v wire.Value) bool {
		return v.IsString() && concerns(v.Text(), func(m Schema) bool { return m != Keep })
	}
	edits := wire.RemoveMembers(s.Get("properties"), func(m wire.Member) bool {
		return concerns(m.Key.Text(), func(m Schema) bool { return m == Hide })
	})
	required := s.Get("required")
	dropped, left := 0, 0
	for e := range required.Elements() {
		if dropRequired(e) {
			dropped++
		} else {
			left++
		}
	}
	switch {
	case dropped > 0 && left == 0:
		// An empty "required" is an error in older dialects.
		edits = append(edits, wire.RemoveMembers(s, func(m wire.Member) bool { return m.Key.Equals("required") })...)
	case dropped > 0:
		edits = append(edits, wire.RemoveElements(required, dropRequired)...)
	}
	return edits
}

// within reports whether inner stands inside outer.
func within(outer, inner wire.Value) bool {
	return outer.Exists() && inner.Off >= outer.Off && inner.Off+len(inner.Raw) <= outer.Off+len(outer.Raw)
}
