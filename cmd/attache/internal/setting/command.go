package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Placeholders returns a check for the elements of a command that may have these placeholders,
// such as {session}. A placeholder must be a whole element, so that its value is always one
// argument.
func Placeholders(names ...string) func(string) error {
	return func(s string) error {
		switch {
		case slices.Contains(names, s):
			return nil
		case strings.ContainsRune(s, 0):
			return errors.New("has a NUL")
		}
		for _, name := range names {
			if strings.Contains(s, name) {
				return fmt.Errorf("%q: %s has to be an element of its own", s, name)
			}
		}
		if strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}") && strings.Trim(s[1:len(s)-1], "abcdefghijklmnopqrstuvwxyz_") == "" {
			return fmt.Errorf("%s is not a placeholder: the placeholders are %s", s, strings.Join(names, " and "))
		}
		return nil
	}
}

// IsArgument reports whether an id that a program chose may be an argument of a command. The command would read an
// id that begins with a dash as an option.
func IsArgument(id string) bool {
	return id != "" && id[0] != '-' && !strings.ContainsFunc(id, unicode.IsControl)
}

// Fill returns a command with values in place of its placeholders.
func Fill(command []string, values map[string]string) []string {
	out := slices.Clone(command)
	for i, word := range command {
		if value, ok := values[word]; ok {
			out[i] = value
		}
	}
	return out
}
