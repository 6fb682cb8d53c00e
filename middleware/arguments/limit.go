package arguments

import (
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/expression"
)

// A limit is what a schema demands of a text by pattern, minLength, maxLength and format.
// It is made when the schema is learnt.
type limit struct {
	unread       string         // the keyword that attache cannot read: no text is known to fit
	pattern      *regexp.Regexp // nil if there is none
	min, max     float64        // lengths
	format       string         // one of those that formats checks
	alternatives [][]limit      // of anyOf and oneOf: in each, one has to hold

	text, misfit string // the text that was checked last, and why it is refused
}

// newLimit reads what a property demands of a text. It follows alternatives as takes
// does.
func newLimit(property wire.Value, outer bool) limit {
	l := limit{max: math.Inf(1)}
	for m := range property.Members() {
		switch key := m.Key.Text(); key {
		case "pattern":
			if l.pattern = compilePattern(m.Value); l.pattern == nil {
				l.unread = key
			}
		case "minLength":
			l.min = l.length(key, m.Value)
		case "maxLength":
			l.max = l.length(key, m.Value)
		case "format":
			if formats()[m.Value.Text()] != nil {
				l.format = m.Value.Text()
			}
		case "anyOf", "oneOf":
			if outer {
				l.alternatives = append(l.alternatives, limitsOf(m.Value))
			}
		}
	}
	return l
}

// limitsOf returns the limits of the alternatives that take a text.
func limitsOf(alternatives wire.Value) (all []limit) {
	for e := range alternatives.Elements() {
		if takes(e, false)&texts != 0 {
			all = append(all, newLimit(e, false))
		}
	}
	return all
}

// length reads a number of characters.
func (l *limit) length(key string, v wire.Value) float64 {
	n, err := strconv.ParseFloat(string(v.Raw), 64)
	if err != nil {
		l.unread = key
	}
	return n
}

// some reports whether a text that is not empty may be refused.
func (l *limit) some() bool {
	if l.unread != "" || l.pattern != nil || l.min > 1 || l.max < math.Inf(1) || l.format != "" {
		return true
	}
	for _, any := range l.alternatives {
		for i := range any {
			if any[i].some() {
				return true
			}
		}
	}
	return false
}

// refuses returns why the server would refuse a text, "" if it would not. Servers count
// the characters of a text in different units; a text fits if it does in all of them.
func (l *limit) refuses(text string) (why string) {
	switch {
	case l.unread != "":
		return "attache cannot check the value by the argument's " + l.unread
	case l.pattern != nil && !l.pattern.MatchString(text):
		return "the value does not match the argument's pattern"
	case float64(utf8.RuneCountInString(text)) < l.min:
		return "the value is shorter than the argument's minLength"
	case float64(len(utf16.Encode([]rune(text)))) > l.max:
		return "the value is longer than the argument's maxLength"
	case l.format != "" && !formats()[l.format](text):
		return "the value does not have the argument's format, " + l.format
	}
	for _, any := range l.alternatives {
		why = ""
		for i := range any {
			if why = any[i].refuses(text); why == "" {
				break
			}
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// Misfit returns why the argument of a tool does not take the value that a rule that fills
// has in a session, "" if it does or if a call decides the value.
func (r Rule) Misfit(t *middleware.Tool, view *sessionstate.Context, server string) string {
	c := newRule(r)
	if c.Mode != Fill || c.Value.UsesArguments() {
		return ""
	}
	var v value
	if c.fact != "" {
		v.known = c.read(view, new(reading))
	} else {
		v.raw, _ = c.compute(&expression.Inputs{Context: view, Tool: t.Name, Annotations: t.Annotations, Server: server})
	}
	if p := c.place(t); p.state == present && !v.empty() {
		return p.misfit(&v)
	}
	return ""
}

const (
	// maxPattern and maxPatternSteps bound the memory and time of a pattern, which is the
	// server's: its length, and about how many instructions it is compiled to.
	maxPattern      = 4096
	maxPatternSteps = 5000
)

// compilePattern returns a schema's pattern, nil if attache does not read it. Patterns are
// those of ECMAScript, of which package regexp reads most. It takes time linear in its input.
func compilePattern(pattern wire.Value) *regexp.Regexp {
	if !pattern.IsString() || len(pattern.Raw) > maxPattern {
		return nil
	}
	tree, err := syntax.Parse(pattern.Text(), syntax.Perl)
	if err != nil || patternSteps(tree) > maxPatternSteps {
		return nil
	}
	r, _ := regexp.Compile(pattern.Text())
	return r
}

// patternSteps estimates to how many instructions a pattern is compiled, where a repetition
// is written out.
func patternSteps(re *syntax.Regexp) int {
	steps := 1
	switch re.Op {
	case syntax.OpLiteral:
		steps = len(re.Rune)
	case syntax.OpCharClass: // pairs: a class such as \pL has hundreds
		steps += len(re.Rune) / 2
	}
	for _, sub := range re.Sub {
		steps += patternSteps(sub)
	}
	if re.Op == syntax.OpRepeat {
		steps *= max(1, re.Min, re.Max)
	}
	return steps
}

// formats returns the checks of the formats that servers hold texts to. By the
// specification any other format says nothing about which texts are good. Validators differ
// in details, so each check accepts what all of them do.
var formats = sync.OnceValue(func() map[string]func(string) bool {
	match := func(pattern string) func(string) bool { return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString }
	const label = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`
	const date, clock = `\d{4}-\d\d-\d\d`, `\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)`
	uuid := match(`[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
	email := match(`[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@` + label + `(?:\.` + label + `)+`)
	host := match(label + `(?:\.` + label + `)*`)
	hostname := func(text string) bool { return len(text) <= 253 && host(text) }
	span := match(`P(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)`)
	return map[string]func(string) bool{
		"uri": isURI, "iri": isURI, "url": isURI, "uri-reference": isReference, "iri-reference": isReference,
		"uuid": uuid, "guid": uuid, "email": email, "idn-email": email, "hostname": hostname, "idn-hostname": hostname,
		"ipv4": func(text string) bool { a, err := netip.ParseAddr(text); return err == nil && a.Is4() },
		"ipv6": func(text string) bool {
			a, err := netip.ParseAddr(text)
			return err == nil && a.Is6() && a.Zone() == ""
		},
		"date-time":    isTime(time.RFC3339, date+"T"+clock),
		"date":         isTime(time.DateOnly, date),
		"time":         isTime("15:04:05Z07:00", clock),
		"duration":     func(text string) bool { return span(text) && !strings.ContainsAny(text[len(text)-1:], "PT") },
		"json-pointer": match(`(?:/(?:[^~/]|~[01])*)*`),
	}
})

// isTime returns the check of a time. Package time alone takes more: an hour of one digit, a comma.
func isTime(layout, shape string) func(string) bool {
	form := regexp.MustCompile("^" + shape + "$")
	return func(text string) bool {
		_, err := time.Parse(layout, text)
		return err == nil && form.MatchString(text)
	}
}

// isReference reports whether a text is a URI or a relative reference.
func isReference(text string) bool {
	odd := strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("\"<>\\^`{|}", c) })
	_, err := url.Parse(text)
	return !odd && err == nil
}

// isURI reports whether a text is a URI. A scheme of one letter is a drive.
func isURI(text string) bool {
	scheme, rest, ok := strings.Cut(text, ":")
	return ok && len(scheme) > 1 && rest != "" && rest != "//" && !strings.ContainsAny(scheme, "/?#") && isReference(text)
}
