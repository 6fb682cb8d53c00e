// Package rewrite is the layer that shows the client another server than there
// is: tools hidden, renamed or described otherwise, and arguments of calls set.
//
//	rewrite:
//	  - {tools: ["delete_*"], hide: true}
//	  - {tools: ["search"], rename: search_code, describe: "Search the code, not the web."}
//	  - {tools: ["create_issue"], when: 'session.trust == "sandboxed"', set: {labels: '["agent"]'}}
//
// # Which names
//
// Rules know tools by the server's names, whatever other rules make of them. All
// rules are looked at, in order, and of two that give one tool a name, a
// description or the value of an argument the first that applies counts. The
// layer stands outside those for arguments and access, which see the server's
// names too; audit and trace stand outside this one, and see the client's.
//
// # Hide
//
// A hidden tool is not listed, and its name is unknown: a call to it is answered
// with the error -32602 that the specification has for unknown tools, and never
// reaches the server. The patterns are also matched with the names of prompts and
// the URIs of resources, in their lists and in requests for one of them. A
// condition that reads annotations hides tools alone.
//
// One resource has many URIs for a server that parses them, and parsers differ. So
// a request for a URI that is not in normal form is refused while a rule hides
// resources of its scheme, unless the server listed that very text; see uri.go. A
// request without a uri, name or ref hides nothing and passes.
//
// # Rename
//
// The client sees and calls the tool by its new name. The old one is unknown,
// unless another tool is given it. Where the server names the tool in a member of
// an error's data, or of a notification's, its name is replaced; see names.go.
// Free text is not touched: not descriptions, not the server's instructions, not
// the messages of errors, not what a tool answers.
//
// If the server turns out to have two tools that would be shown under one name,
// its list is answered with an error that names both, and so are calls to that
// name: which of the two was meant is not ours to guess.
//
// # Describe and set
//
// Describe replaces the description in the list. Set gives arguments of a call
// values that nothing the client sends can change; all conditions and values are
// evaluated on the call as it came. The schema shown stays as it is: to hide an
// argument from the model, pin it (see package arguments).
//
// # What it does when it cannot
//
// Hide and set enforce: a condition that cannot be evaluated hides, or refuses the
// call, and so does a value that cannot be set. A list that cannot be edited is
// answered with an error if tools may have to be hidden or renamed in it. Rename
// and describe with a condition that fails leave the tool as it is.
//
// Conditions may read tool.annotations as the server declared them in the last
// tools/list that passed; before that they are unknown, and read as the careful
// defaults of the specification. They are the server's word for itself: let them
// hide, never show.
package rewrite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Options are the rules. Zero values work: nothing is rewritten.
type Options struct {
	// Rules in order; see the package comment for which of two counts.
	Rules []Rule
	// Server is the server's name, for conditions.
	Server string
}

// Shared holds the compiled rules. It serves any number of connections at once and
// does not change.
type Shared struct {
	rules  []Rule
	server string
	byNew  map[string][]int // the rules that give a name, by that name
	named  []string         // the names in rules that rename
	all    ruleSet
	items  []int // the rules that may hide prompts
	uris   []int // the rules that may hide resources

	lists        bool // a list of tools may have to be edited
	learns       bool // a condition reads annotations
	privateTools bool // what is listed depends on who asks
	privateItems bool
	needs        middleware.Layer
}

// Compile checks and prepares the rules.
func Compile(o Options) (*Shared, error) {
	s := &Shared{rules: slices.Clone(o.Rules), server: o.Server, byNew: map[string][]int{}}
	for i := range s.rules {
		r := &s.rules[i]
		r.Name = cmp.Or(r.Name, fmt.Sprintf("%s[%d]", layerName, i))
		if err := cmp.Or(r.Check(), Collision(s.rules, i)); err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		s.add(i, r)
	}
	var needs []middleware.Layer
	for i := range s.rules {
		needs = append(needs, s.rules[i].needs()...)
	}
	s.needs = middleware.Needs(needs...)
	s.needs.Enforces = s.binds() || len(s.all.set) > 0
	return s, nil
}

// add prepares rule i, and notes what the layer must do because of it.
func (s *Shared) add(i int, rule *Rule) {
	rule.Set = slices.Clone(rule.Set)
	for n := range rule.Set {
		rule.Set[n].keys = append([]string{"params", "arguments"}, rule.Set[n].Path...)
	}
	if rule.Rename != "" {
		rule.quoted = wire.Quote(rule.Tools[0])
		s.byNew[rule.Rename] = append(s.byNew[rule.Rename], i)
		s.named = append(s.named, rule.Tools[0], rule.Rename)
	}
	s.all.add(i, rule)
	if rule.hidesItems() {
		s.items = append(s.items, i)
		if rule.uris = uriPatterns(rule.Tools); rule.uris != nil {
			s.uris = append(s.uris, i)
		}
	}
	s.lists = s.lists || rule.lists()
	s.learns = s.learns || rule.When != nil && rule.When.UsesAnnotations()
	s.privateTools = s.privateTools || rule.lists() && rule.usesSession()
	s.privateItems = s.privateItems || rule.hidesItems() && rule.usesSession()
}

// hides reports whether a rule can hide a tool.
func (s *Shared) hides() bool { return len(s.all.hide) > 0 }

// renames reports whether a rule renames a tool.
func (s *Shared) renames() bool { return len(s.byNew) > 0 }

// binds reports whether a list of tools must not be shown unedited.
func (s *Shared) binds() bool { return s.hides() || s.renames() }

// hidesURIs reports whether a rule can hide a resource.
func (s *Shared) hidesURIs() bool { return len(s.uris) > 0 }

// isNamed reports whether a rule renames a tool of that name, or gives the name.
func (s *Shared) isNamed(name string) bool { return slices.Contains(s.named, name) }

const none = -1 // no rule

// key returns where the configuration has rule i, "" for none.
func (s *Shared) key(i int) string {
	if i == none {
		return ""
	}
	return s.rules[i].Name
}
