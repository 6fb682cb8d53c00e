// Package headername validates names of HTTP headers.
package headername

import "strings"

// Pattern is the regular expression of the names that [IsValid] accepts.
const Pattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

// IsValid reports whether name is a token, as header names must be (RFC 9110, 5.6.2).
func IsValid(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}
