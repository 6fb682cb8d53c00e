// Package rewrite is the layer that hides and renames the tools of a server, changes
// their descriptions, and sets arguments of calls.
//
//	rewrite:
//	  - {tools: ["delete_*"], hide: true}
//	  - {tools: ["search"], rename: search_code, describe: "Search the code, not the web."}
//	  - {tools: ["create_issue"], when: 'session.trust == "sandboxed"', set: {labels: '["agent"]'}}
//
// # Which names
//
// Rules refer to tools by the server's names, even if another rule renames them. If
// several rules that apply give a tool a name, a description or the value of an
// argument, the first one counts. The layers for arguments and access are inside this
// one and also see the server's names; audit and trace are outside and see the client's.
//
// # Hide
//
// A hidden tool is not listed. A call to it is answered with -32602, the error of the
// specification for an unknown tool, and never reaches the server. The patterns are also
// matched with the names of prompts and the URIs of resources, in lists and in requests.
// A rule with a condition that reads annotations only hides tools.
//
// A server that parses URIs accepts several URIs for one resource, and parsers differ.
// Therefore, while a rule hides resources of a scheme, a request for a URI of this scheme
// that is not in normal form is refused, unless the server listed exactly that URI; see
// uri.go. A request without a uri, name or ref passes.
//
// # Rename
//
// The client sees and calls the tool by its new name. The old name is unknown, unless
// another tool is renamed to it. If the server names the tool in a member of the data of
// an error or a notification, the name is replaced; see names.go. Free text stays as it
// is: descriptions, the server's instructions, error messages, and the results of tools.
//
// If the server has two tools that the client would see under one name, its list is
// answered with an error that names both, and so are calls to that name, because attache
// cannot know which of the two is meant.
//
// # Describe and set
//
// Describe replaces the description in the list. Set gives arguments values that the
// client cannot change; all conditions and values are evaluated on the call as the client
// sent it. The schema in the list does not change: to hide an argument from the model,
// pin it (see package arguments).
//
// # Failures
//
// Hide and set enforce: if a condition of hide cannot be evaluated, the tool is hidden; if
// a condition or value of set cannot be evaluated, or the value cannot be set, the call is
// refused. A list that cannot be edited is answered with an error if tools may have to be
// hidden or renamed in it. If a condition of rename or describe cannot be evaluated, the
// tool stays as it is.
//
// Conditions may read tool.annotations as the server declared them in the last
// tools/list, for which attache asks before it refuses a call. Without a list they have the
// careful defaults of the specification. The server itself declares them, so use them to
// hide a tool, never to show one.
package rewrite

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Options are the rules and what else is the same for all connections.
type Options struct {
	// Rules are the rules in order; see the package comment.
	Rules []Rule
	// Server is the server's name, for conditions.
	Server string
}

// Shared holds the compiled rules. It can be used by any number of connections at once
// and does not change.
type Shared struct {
	rules     []Rule
	server    string
	byNewName map[string][]int // the rules that rename, by the new name; several if Collision cannot tell that they coincide
	all       ruleSet          // all rules; for one tool, glob.Names keeps the rules that match it: see Conn.matching
	items     []int            // the rules that may hide prompts
	uris      []int            // those of items that may hide resources: a pattern that matches no colon matches no URI

	editsList       bool // a list of tools may have to be edited
	readAnnotations bool // a rule reads annotations
	privateTools    bool // the list of tools depends on the session
	privateItems    bool // the lists of prompts and resources depend on the session
	needs           middleware.Layer
}

// Compile checks and prepares the rules.
func Compile(o Options) (*Shared, error) {
	s := &Shared{rules: slices.Clone(o.Rules), server: o.Server, byNewName: map[string][]int{}}
	for i := range s.rules {
		r := &s.rules[i]
		r.Name = cmp.Or(r.Name, fmt.Sprintf("%s[%d]", layerName, i))
		err := r.Check()
		if err == nil {
			err = Collision(s.rules, i)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Name, err)
		}
		s.add(i, r)
	}
	var needs []middleware.Layer
	for i := range s.rules {
		needs = append(needs, s.rules[i].needs()...)
	}
	s.needs = middleware.Needs(needs...)
	// Describe alone does not enforce: a frame that parsers may read differently can do it no harm.
	s.needs.Enforces = s.binds() || len(s.all.set) > 0
	return s, nil
}

// add prepares rule i and adds it to the indexes.
func (s *Shared) add(i int, rule *Rule) {
	rule.Set = slices.Clone(rule.Set)
	for n := range rule.Set {
		rule.Set[n].keys = append([]string{"params", "arguments"}, rule.Set[n].Path...)
	}
	if rule.Rename != "" {
		// Once, because each call of the tool needs it.
		rule.quoted = wire.Quote(rule.Tools[0])
		s.byNewName[rule.Rename] = append(s.byNewName[rule.Rename], i)
	}
	s.all.add(i, rule)
	if rule.hidesItems() {
		s.items = append(s.items, i)
		if rule.uris = uriPatterns(rule.Tools); rule.uris != nil {
			s.uris = append(s.uris, i)
		}
	}
	s.editsList = s.editsList || rule.editsList()
	s.readAnnotations = s.readAnnotations || rule.usesAnnotations()
	s.privateTools = s.privateTools || rule.editsList() && rule.When.UsesSession()
	s.privateItems = s.privateItems || rule.hidesItems() && rule.When.UsesSession()
}

func (s *Shared) renames() bool { return len(s.byNewName) > 0 }

// binds reports whether a list of tools must not pass unedited.
func (s *Shared) binds() bool { return len(s.all.hide) > 0 || s.renames() }

// hidesURIs reports whether a rule can hide a resource.
func (s *Shared) hidesURIs() bool { return len(s.uris) > 0 }

// isRenamed reports whether name is the old or new name in a rule that renames.
func (s *Shared) isRenamed(name string) bool {
	return slices.ContainsFunc(s.all.rename, func(i int) bool { return s.rules[i].Tools[0] == name || s.rules[i].Rename == name })
}

// key returns the place of rule i in the configuration, or "" if i is none.
func (s *Shared) key(i int) string {
	if i == none {
		return ""
	}
	return s.rules[i].Name
}
