package constraint

import (
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A Limit holds the constraints of a schema on a string: pattern, minLength, maxLength and
// format.
type Limit struct {
	unread       string         // a keyword that attache cannot read, so that no string is known to fit
	pattern      *regexp.Regexp // nil if there is none
	min, max     float64        // lengths
	format       string         // a key of formats, or ""
	alternatives [][]Limit      // of anyOf and oneOf; in each, one must hold
}

// Limit returns the constraints of a property on strings.
func (s Schema) Limit() Limit {
	l := Limit{max: math.Inf(1)}
	for m := range s.Members() {
		switch key := m.Key.Text(); key {
		case "pattern":
			if l.pattern = CompilePattern(m.Value); l.pattern == nil {
				l.unread = key
			}
		case "minLength":
			l.min = l.length(key, m.Value)
		case "maxLength":
			l.max = l.length(key, m.Value)
		case "format":
			// By the specification a validator ignores a format that it does not know.
			if formats()[m.Value.Text()] != nil {
				l.format = m.Value.Text()
			}
		case "anyOf", "oneOf":
			if !s.inner {
				l.alternatives = append(l.alternatives, limitsOf(m.Value))
			}
		}
	}
	return l
}

// limitsOf returns the limits of the alternatives that accept a string.
func limitsOf(alternatives wire.Value) (all []Limit) {
	for e := range alternatives.Elements() {
		// The others do not take a string, so their limits say nothing.
		if s := (Schema{e, true}); s.Accepted()&Texts != 0 {
			all = append(all, s.Limit())
		}
	}
	return all
}

// length reads the value of minLength or maxLength.
func (l *Limit) length(key string, v wire.Value) float64 {
	n, err := strconv.ParseFloat(string(v.Raw), 64)
	if err != nil {
		l.unread = key
	}
	return n
}

// Restricts reports whether the limit refuses some non-empty strings. An empty one counts as no value.
func (l *Limit) Restricts() bool {
	return l.unread != "" || l.pattern != nil || l.min > 1 || l.max < math.Inf(1) || l.format != "" ||
		slices.ContainsFunc(l.alternatives, func(limits []Limit) bool {
			return slices.ContainsFunc(limits, func(l Limit) bool { return l.Restricts() })
		})
}

// Refuses returns why the server would refuse a string, "" if it would not. Servers count
// characters in different units; a string must fit in all of them: code points for min, UTF-16 units,
// which are never fewer, for max.
func (l *Limit) Refuses(text string) (why string) {
	switch {
	// Nothing is known to fit, so nothing is filled: the call may be good without the argument.
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
	for _, limits := range l.alternatives {
		why = ""
		for i := range limits {
			if why = limits[i].Refuses(text); why == "" {
				break
			}
		}
		if why != "" {
			return why
		}
	}
	return ""
}

const (
	// maxPattern and maxPatternSteps bound the memory and time that a server's pattern uses:
	// its length, and the approximate number of instructions to which it is compiled.
	maxPattern      = 4096
	maxPatternSteps = 5000
)

// CompilePattern compiles a schema's pattern. It returns nil if attache cannot read it: the
// patterns are those of ECMAScript, most of which package regexp accepts.
func CompilePattern(pattern wire.Value) *regexp.Regexp {
	if !pattern.IsString() || len(pattern.Raw) > maxPattern {
		return nil
	}
	tree, err := syntax.Parse(pattern.Text(), syntax.Perl)
	// The steps are counted before Compile, because Compile takes the memory.
	if err != nil || patternSteps(tree) > maxPatternSteps {
		return nil
	}
	r, _ := regexp.Compile(pattern.Text())
	return r
}

// patternSteps estimates the number of instructions of a compiled pattern, in which repetitions
// are expanded.
func patternSteps(re *syntax.Regexp) int {
	steps := 1
	switch re.Op {
	case syntax.OpLiteral:
		steps = len(re.Rune)
	case syntax.OpCharClass: // pairs of runes; a class such as \pL has hundreds
		steps += len(re.Rune) / 2
	}
	for _, sub := range re.Sub {
		steps += patternSteps(sub)
	}
	if re.Op == syntax.OpRepeat {
		// Max is -1 for a repetition without an upper bound, which is compiled to a loop.
		steps *= max(1, re.Min, re.Max)
	}
	return steps
}

// formats returns the checks of the formats that servers validate. By the specification, other
// formats do not constrain strings. Validators differ in details, so each check accepts only
// what all of them accept.
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

// isTime returns the check of a time. It also matches a pattern because package time accepts more,
// such as an hour with one digit.
func isTime(layout, shape string) func(string) bool {
	form := regexp.MustCompile("^" + shape + "$")
	return func(text string) bool {
		_, err := time.Parse(layout, text)
		return err == nil && form.MatchString(text)
	}
}

// isReference reports whether a string is a URI or a relative reference.
func isReference(text string) bool {
	odd := strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("\"<>\\^`{|}", c) })
	_, err := url.Parse(text)
	return !odd && err == nil
}

// isURI reports whether a string is a URI. A scheme of one letter is a Windows drive.
func isURI(text string) bool {
	scheme, rest, ok := strings.Cut(text, ":")
	return ok && len(scheme) > 1 && rest != "" && rest != "//" && !strings.ContainsAny(scheme, "/?#") && isReference(text)
}

// NumberMisfit returns why a property does not accept a number, "" if it does.
func (s Schema) NumberMisfit(number *Value) (why string) {
	n, err := strconv.ParseFloat(string(number.JSON), 64)
	if err != nil {
		return "attache cannot read the number"
	}
	for m := range s.Members() {
		limit, err := strconv.ParseFloat(string(m.Value.Raw), 64)
		isNumber := err == nil
		switch key := m.Key.Text(); {
		case isNumber && (key == "minimum" && n < limit || key == "exclusiveMinimum" && n <= limit):
			return "the value is below the argument's " + key
		case isNumber && (key == "maximum" && n > limit || key == "exclusiveMaximum" && n >= limit):
			return "the value is above the argument's " + key
		case key == "type" && math.Trunc(n) != n && (m.Value.Equals("integer") || Contains(m.Value, "integer") && !Contains(m.Value, "number")):
			return "the argument takes integers only"
		case !s.inner && (key == "anyOf" || key == "oneOf"):
			if why := alternativesMisfit(m.Value, number); why != "" {
				return why
			}
		}
	}
	return ""
}

// alternativesMisfit returns why no alternative for numbers accepts a number, "" if one does or if
// there is none.
func alternativesMisfit(alternatives wire.Value, number *Value) (why string) {
	for e := range alternatives.Elements() {
		s := Schema{e, true}
		if s.Accepted()&Numbers == 0 {
			continue
		}
		if why = s.NumberMisfit(number); why == "" {
			return ""
		}
	}
	return why
}
