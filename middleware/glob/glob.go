// Package glob matches names against the patterns of rules: * matches any number of
// characters, ? matches one, and a backslash makes the next character literal. Letters
// are compared exactly, without folding case or characters that look alike.
package glob

import (
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/match"
)

// Check returns an error if the patterns of a rule are invalid.
func Check(patterns []string) error {
	switch {
	case len(patterns) == 0:
		return errors.New(`no tools are named: write tools: ["*"] for all`)
	case slices.Contains(patterns, ""):
		return errors.New("an empty pattern names no tool")
	}
	return nil
}

// Literal reports whether a pattern has no special characters, so that it matches only one name, the
// pattern itself.
func Literal(pattern string) bool { return firstSpecial(pattern) < 0 }

// startsDiffer reports whether the pattern cannot match the name because of their first
// bytes. This rules out most patterns for most names.
func startsDiffer(pattern, name string) bool {
	return pattern != "" && name != "" && pattern[0] != name[0] && firstSpecial(pattern[:1]) < 0
}

// firstSpecial returns the index of the first special character, or -1 if there is none. It is
// faster than strings.IndexAny for patterns, which are short.
func firstSpecial(pattern string) int {
	for i := range len(pattern) {
		switch pattern[i] {
		case '*', '?', '\\':
			return i
		}
	}
	return -1
}

// Bounds of a match. The client chooses the names of calls, and the time of a match grows with
// a power of the name's length.
const (
	// maxName is the longest name, in bytes, that is matched with a pattern that is more than
	// a prefix and a star. The specification recommends at most 128 characters.
	maxName = 1024
	// maxSteps is the number of steps that a match may take for each byte of the name.
	maxSteps = 100
)

// ErrTooLong is returned for a name that would take too long to match, which no ordinary name
// does. A layer that enforces must then refuse or hide.
var ErrTooLong = errors.New("a pattern takes too long to match with the tool's name")

// Match reports whether one of the patterns matches the name. The error is
// [ErrTooLong].
func Match(patterns []string, name string) (bool, error) {
	for _, p := range patterns {
		switch {
		case p == "*":
			return true, nil
		case startsDiffer(p, name):
			continue
		}
		switch at := firstSpecial(p); {
		case at < 0:
			if p == name {
				return true, nil
			}
			continue
		case at == len(p)-1 && p[at] == '*':
			if strings.HasPrefix(name, p[:at]) {
				return true, nil
			}
			continue
		}
		if len(name) > maxName {
			return false, ErrTooLong
		}
		if name == "" {
			// MatchLimit allows no steps for no bytes.
			if strings.Trim(p, "*") == "" {
				return true, nil
			}
			continue
		}
		matched, stopped := match.MatchLimit(name, p, maxSteps)
		switch {
		case stopped:
			return false, ErrTooLong
		case matched:
			return true, nil
		}
	}
	return false, nil
}
