// Package glob matches names against the patterns of rules: * stands for any
// characters, ? for one, and a backslash takes the character behind it as it is.
// Letters are compared one by one, with no folding of case or look-alikes.
package glob

import (
	"errors"
	"strings"

	"github.com/tidwall/match"
)

// Check returns what is wrong with the patterns of one rule.
func Check(patterns []string) error {
	if len(patterns) == 0 {
		return errors.New(`no tools are named: write tools: ["*"] for all`)
	}
	for _, p := range patterns {
		if p == "" {
			return errors.New("an empty pattern names no tool")
		}
	}
	return nil
}

// Literal reports whether a pattern matches one name alone, itself.
func Literal(pattern string) bool { return !strings.ContainsAny(pattern, special) }

// special are the characters that mean something else in a pattern.
const special = `*?\`

// otherAtOnce reports whether the first bytes tell that a pattern does not match, as
// they do of most patterns for most names.
func otherAtOnce(pattern, name string) bool {
	return pattern != "" && name != "" && pattern[0] != name[0] && firstSpecial(pattern[:1]) < 0
}

// firstSpecial is strings.IndexAny(pattern, special), which takes longer to prepare
// than a pattern is long.
func firstSpecial(pattern string) int {
	for i := range len(pattern) {
		switch pattern[i] {
		case '*', '?', '\\':
			return i
		}
	}
	return -1
}

// The client chooses the names of calls, and the time of a match grows with a power of their
// length.
const (
	// maxName is how long a name may be that is held against a pattern with more
	// than a star at its end; the specification advises 128.
	maxName = 1024
	// patience is how many steps a match may take for each byte of a name.
	patience = 100
)

// ErrTooLong is returned for a name that would take too long to match, which no ordinary name
// does. A layer that enforces then refuses or hides.
var ErrTooLong = errors.New("a pattern takes too long to match with the tool's name")

// Match reports whether one of the patterns matches the name. The error is
// [ErrTooLong].
func Match(patterns []string, name string) (bool, error) {
	for _, p := range patterns {
		switch {
		case p == "*":
			return true, nil
		case otherAtOnce(p, name):
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
		matched, stopped := match.MatchLimit(name, p, patience)
		switch {
		case stopped:
			return false, ErrTooLong
		case matched:
			return true, nil
		}
	}
	return false, nil
}
