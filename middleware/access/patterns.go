package access

import (
	"errors"
	"strings"

	"github.com/tidwall/match"
)

func checkPatterns(patterns []string) error {
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

// The names of calls are the client's to choose, and the time a match takes grows
// with a power of their length.
const (
	// maxName is how long a name may be that is held against a pattern with more
	// than a star at its end; the specification advises 128.
	maxName = 1024
	// patience is how many steps a match may take for each byte of a name.
	patience = 100
)

var errPattern = errors.New("a pattern takes too long to match with the tool's name")

// matches reports whether one of the patterns matches the tool.
func matches(patterns []string, tool string) (bool, error) {
	for _, p := range patterns {
		if p == "*" {
			return true, nil
		}
		switch star := strings.IndexAny(p, `*?\`); {
		case star < 0:
			if p == tool {
				return true, nil
			}
			continue
		case star == len(p)-1 && p[star] == '*':
			if strings.HasPrefix(tool, p[:star]) {
				return true, nil
			}
			continue
		}
		if len(tool) > maxName {
			return false, errPattern
		}
		matched, stopped := match.MatchLimit(tool, p, patience)
		switch {
		case stopped:
			return false, errPattern
		case matched:
			return true, nil
		}
	}
	return false, nil
}
