// Package access is the layer that decides who may call which tool, and how often.
//
// A rule names tools and what a call of them needs. The first rule that decides
// wins; a call that no rule decides gets the default:
//
//	access:
//	  default: deny
//	  hide: true
//	  rules:
//	    - {tools: ["delete_*"], deny: true, when: 'session.trust != "direct"', message: "Ask a person to delete."}
//	    - {tools: ["get_*", "list_*"], require: [records:read]}
//	    - {tools: ["write_*"], require: [records:write], when: 'has(arguments.path)'}
//	    - {tools: ["ping"]}
//	  rates:
//	    - {tools: ["*"], per: tenant, limit: 60/minute, burst: 10}
//
// A rule is skipped if its tools do not match or its condition is false.
// Otherwise a rule with deny refuses the call; one with require allows it if the
// principal has every permission named, and refuses it if not; a rule with
// neither allows it. Put a rule that restricts in front of the rules it restricts.
//
// Names are compared byte by byte. A server that ignores case or trims names
// may accept a spelling that no rule matches, so only rules that allow, together
// with default: deny, are a boundary for such a server.
//
// # What is judged
//
// The layer judges the call as it will be sent: it runs behind the layers that
// edit calls, and rules use the server's names for tools. A refusal is a tool
// result with isError. Its text is for the model and names only what is missing.
// A refused notification is dropped.
//
// The layer makes a note of every decision, and of every tool it removes from a
// list.
//
// A call that cannot be decided is refused: a condition failed, a permission is
// required and there is no principal, or the principal could not be looked up.
//
// A condition may read tool.annotations, which are what the server declared in
// the last tools/list of this connection. Without a list the annotations are unknown. A call that
// cannot be decided without them waits until attache has asked for the list; a notification
// cannot wait and is refused. If the server does not answer, the annotations have the defaults of
// the specification. The server chooses the annotations, so a rule may use them only to deny.
//
// # What is listed
//
// With Hide, a second layer (Conn.ListLayer), which a program adds to its chain,
// removes a tool from tools/list if its calls are refused whatever their arguments.
// A condition that reads arguments hides nothing. If a list cannot be filtered, the
// client gets an error instead. A hidden tool can still be called by its name, and
// the call is judged like any other.
//
// # Rates
//
// A rate has one token bucket for each session, user, tenant or tool. Only allowed
// calls take a token. The client may choose
// the session's key in _meta, so per session is for fairness only, within a tenant; per
// user and per tenant cannot be evaded. Calls without a user or tenant share one bucket.
//
// The buckets are in the memory of this process, or several processes share them
// through a [sessionstate.Lender]: each process borrows some tokens and spends them
// without asking again. A call waits while tokens are borrowed for it. While the Lender
// does not answer, Options.Down applies.
package access

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
)

// Options are the rules. Zero values work: every call is allowed.
type Options struct {
	// Rules are checked in order; the first that decides wins.
	Rules []Rule
	// Default decides a call that no rule decides; "" means Allow.
	Default Default
	// Hide makes Conn.ListLayer remove tools that may not be called from tools/list.
	Hide bool
	// Rates limit how often allowed calls are made.
	Rates []Rate
	// Down says what happens while the Lender of the rates does not answer; "" means
	// DownShare.
	Down Down

	// Server is the server's name, for conditions. Each server has its own buckets.
	Server string
	// Limiters, if not nil, count the calls for Rates. Pass the same Limiters to
	// the next Compile so that a configuration reload refills no bucket.
	Limiters *Limiters
}

// Shared holds the compiled rules and counts the rates. It serves any number of
// connections at once.
type Shared struct {
	o        Options
	limiters *Limiters
	rates    []*buckets // in limiters, one for each rate
	all      *candidates
	reads    [][]string // the argument names that conditions read, by depth

	readsAnnotations bool // whether a condition reads annotations
	filters          bool // whether lists have to be filtered
	private          bool // whether a filtered list depends on the principal or the session
}

// Compile checks and prepares the rules.
func Compile(o Options) (*Shared, error) {
	if err := o.prepare(); err != nil {
		return nil, err
	}
	o.Limiters = cmp.Or(o.Limiters, new(Limiters))
	s := &Shared{o: o, limiters: o.Limiters, rates: o.Limiters.buckets(o.Rates, o.Server), all: new(candidates)}
	s.filters = o.Hide && o.Default == Deny
	var conditions []middleware.Layer
	for i, r := range o.Rules {
		conditions = append(conditions, middleware.Layer{ArgumentNames: r.When.ArgumentNames()})
		s.all.rules = append(s.all.rules, i)
		s.readsAnnotations = s.readsAnnotations || r.When.UsesAnnotations()
		switch {
		case !o.Hide:
		case r.When.UsesArguments(): // hides nothing, but may show a tool that the next rules hide
			s.private = s.private || r.usesPrincipal()
		default:
			s.filters = s.filters || r.mayRefuse()
			s.private = s.private || r.usesSession()
		}
	}
	s.private = s.private && s.filters
	s.reads = middleware.Needs(conditions...).ArgumentNames
	return s, nil
}

// prepare checks the options and gives each rule and rate a name.
func (o *Options) prepare() error {
	if o.Default != "" && o.Default != Allow && o.Default != Deny {
		return fmt.Errorf("access.default is %q: write allow or deny", string(o.Default))
	}
	if o.Down != "" && o.Down != DownShare && o.Down != DownClosed {
		return fmt.Errorf("rates.down is %q: write share or closed", string(o.Down))
	}
	o.Rules, o.Rates = slices.Clone(o.Rules), slices.Clone(o.Rates)
	for i := range o.Rules {
		r := &o.Rules[i]
		r.Name = cmp.Or(r.Name, fmt.Sprintf("access.rules[%d]", i))
		if err := r.Check(); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if err := CheckOrder(o.Rules, i); err != nil {
			return fmt.Errorf("%s %w", r.Name, err)
		}
	}
	for i := range o.Rates {
		r := &o.Rates[i]
		r.Name = cmp.Or(r.Name, fmt.Sprintf("access.rates[%d]", i))
		if err := r.Check(); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	return nil
}

// Lists reports whether the rules hide tools, so that [Conn.ListLayer] is needed.
func (s *Shared) Lists() bool { return s.filters }

// candidates are the rules that may apply to one tool.
type candidates struct {
	rules   []int // their indexes, in order
	matched bool  // whether the tool is known to match the patterns of each of them
}

// candidates returns the rules for a tool. A rule whose patterns take too long to
// match is included, because applying it refuses the call.
func (s *Shared) candidates(tool string) *candidates {
	c := &candidates{matched: true}
	for i := range s.o.Rules {
		matches, err := glob.Match(s.o.Rules[i].Tools, tool)
		if matches || err != nil {
			c.rules = append(c.rules, i)
		}
		c.matched = c.matched && err == nil
	}
	return c
}
