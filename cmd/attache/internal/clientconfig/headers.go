package clientconfig

import (
	"slices"
	"strings"
)

// headerVariable returns the end of the name of the variable that holds a header: _ stands
// in the place of -, and __ in the place of _.
func headerVariable(header string) string {
	return strings.NewReplacer("_", "__", "-", "_").Replace(header)
}

// HeaderOf returns the header that a variable holds: variable is its name without
// [HeaderPrefix] or [EnvHeaderPrefix].
func HeaderOf(variable string) string {
	return strings.NewReplacer("__", "_", "_", "-").Replace(variable)
}

// isPlainHeader reports whether the name of a header becomes that of a variable and back.
func isPlainHeader(name string) bool {
	odd := strings.ContainsFunc(name, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	return name != "" && !odd && HeaderOf(headerVariable(name)) == name
}

// IsOwnHeader reports whether attache sets a header of its requests itself, so that no
// configuration may.
func IsOwnHeader(name string) bool {
	name = strings.ToLower(name)
	return IsRepeatedHeader(name) || strings.HasPrefix(name, "mcp-") || slices.Contains([]string{"content-length", "host", "idempotency-key",
		"last-event-id", "te", "trailer", "transfer-encoding", "upgrade", "x-idempotency-key"}, name)
}

// IsRepeatedHeader reports whether entries of clients often name a header that any client
// sends by itself. It is left out: what attache sends is right.
func IsRepeatedHeader(name string) bool {
	return slices.Contains([]string{"accept", "accept-encoding", "connection", "content-type", "mcp-protocol-version"}, strings.ToLower(name))
}
