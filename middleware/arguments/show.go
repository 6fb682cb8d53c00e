package arguments

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// listed returns the hook that learns the tools of a page of tools/list and has
// their schemas agree with the rules.
func (a *Arguments) listed(view *sessionstate.Context, first bool) middleware.ReplyHook {
	return func(ctx context.Context, reply *wire.Message) error {
		list := reply.Get("result", "tools")
		if !list.IsArray() || !reply.Plain() {
			return nil
		}
		call := middleware.CallFrom(ctx)
		page := map[string]*tool{}
		s := shaping{a: a, view: view, noted: call.Noted()}
		index := 0
		for entry := range list.Elements() {
			name, t := a.read(entry)
			page[name] = t
			s.shape(index, name, t, entry.Get("inputSchema"))
			index++
		}
		a.learn(page, first, !reply.Get("result", "nextCursor").Exists())
		if s.depends {
			s.edits = append(s.edits, private(reply.Get("result"), view)...)
		}
		if err := reply.Apply(s.edits...); err != nil {
			return err
		}
		for _, n := range s.notes {
			call.Note(n)
		}
		return nil
	}
}

// private returns the edit that keeps a list from those it was not made for
// (specification, server/utilities/caching: cacheScope).
func private(result wire.Value, view *sessionstate.Context) []wire.Splice {
	scope := result.Get("cacheScope")
	switch {
	case scope.Equals("private"), !scope.Exists() && (view == nil || !view.Modern):
		return nil
	case scope.Exists():
		return []wire.Splice{{Off: scope.Off, Len: len(scope.Raw), Text: []byte(`"private"`)}}
	}
	return []wire.Splice{wire.AddMember(result, "cacheScope", []byte(`"private"`))}
}

// A shaping has the schemas of one page agree with the rules.
type shaping struct {
	a       *Arguments
	view    *sessionstate.Context
	noted   bool
	edits   []wire.Splice
	notes   []middleware.Note
	depends bool // on who asks
}

// shape edits the schema of one tool. What one rule wants is done wholly or not at
// all.
func (s *shaping) shape(index int, name string, t *tool, schema wire.Value) {
	if !schema.IsObject() {
		return // nothing is shown
	}
	text := schema.Raw
	settled := map[int]bool{}
	for i := range t.places {
		p := &t.places[i]
		if settled[p.rule.slot] || !s.applies(p.rule, name, t) {
			continue
		}
		settled[p.rule.slot] = true
		if !p.shaped() {
			continue
		}
		next, ok := agree(text, p.rule)
		if !ok {
			s.a.tellUnshaped(name, p.rule)
			continue
		}
		if s.noted && !bytes.Equal(next, text) {
			s.notes = append(s.notes, middleware.Note{Layer: layerName, Rule: p.rule.Name, Act: middleware.Edited,
				Why: "the schema agrees with the rule", Path: []string{"result", "tools", strconv.Itoa(index), "inputSchema"},
				Before: text, After: next, Source: "the rule"})
		}
		text = next
	}
	if !bytes.Equal(text, schema.Raw) {
		s.edits = append(s.edits, wire.Splice{Off: schema.Off, Len: len(schema.Raw), Text: text})
	}
}

// shaped reports whether the schema has to agree with the rule about this place.
func (p *place) shaped() bool {
	switch {
	case p.rule.Schema == Keep, p.state == absent:
		return false
	case p.rule.Mode == Fill:
		return p.fillable()
	}
	return true
}

// applies reports whether the rule applies to every call of the tool that this
// client makes, as far as a list can tell.
func (s *shaping) applies(r *rule, name string, t *tool) bool {
	if r.When == nil {
		return true
	}
	s.depends = s.depends || r.When.UsesSession()
	if r.When.UsesArguments() {
		return false
	}
	holds, err := r.When.Holds(&expression.Inputs{Context: s.view, Tool: name, Annotations: t.annotations, Server: s.a.o.Server})
	return err == nil && holds
}

// maxTold bounds the memory of warnings: the names are the upstream's to choose.
const maxTold = 1000

// tellUnshaped warns of a tool that is shown as it is, once.
func (a *Arguments) tellUnshaped(tool string, r *rule) {
	a.mu.Lock()
	told := a.told[tool] || len(a.told) >= maxTold
	if !told {
		a.told[strings.Clone(tool)] = true
	}
	a.mu.Unlock()
	if !told {
		a.o.Log.Warn("the schema of a tool cannot be made to agree with a rule for one of its arguments, so the tool is shown as it is; the rule holds all the same",
			"tool", cut(tool), "argument", r.path, "mode", string(r.Mode))
	}
}
