package clientconfig

import (
	"slices"
	"strings"
)

// headerVariable returns the suffix of the variable that holds a header: - becomes _, and _ becomes
// __.
func headerVariable(header string) string {
	return strings.NewReplacer("_", "__", "-", "_").Replace(header)
}

// HeaderOf returns the name of the header that a variable holds. variable is the variable's name
// without [HeaderPrefix] or [EnvHeaderPrefix].
func HeaderOf(variable string) string {
	return strings.NewReplacer("__", "_", "_", "-").Replace(variable)
}

// isPlainHeader reports whether the name of a header can be converted to that of a variable and
// back.
func isPlainHeader(name string) bool {
	odd := strings.ContainsFunc(name, func(c rune) bool {
		return c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
	return name != "" && !odd && HeaderOf(headerVariable(name)) == name
}

// IsOwnHeader reports whether attache sets this request header itself, so that a configuration must
// not.
func IsOwnHeader(name string) bool {
	name = strings.ToLower(name)
	return IsRepeatedHeader(name) || strings.HasPrefix(name, "mcp-") || slices.Contains([]string{"content-length", "host", "idempotency-key",
		"last-event-id", "te", "trailer", "transfer-encoding", "upgrade", "x-idempotency-key"}, name)
}

// IsRepeatedHeader reports whether this is a header that every client sends, which entries often
// repeat without need. The entry's value is ignored, because attache sends the right one.
func IsRepeatedHeader(name string) bool {
	return slices.Contains([]string{"accept", "accept-encoding", "connection", "content-type", "mcp-protocol-version"}, strings.ToLower(name))
}
