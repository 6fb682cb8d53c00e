package sessionstate

import (
	"slices"
	"strings"
)

// maxVariableBytes is the limit of Windows for the value of a variable. Linux allows four
// times as much.
const maxVariableBytes = 32_767

// Environment returns the environment variables of c for the wrapped server, as "NAME=value":
// for each prefix <PREFIX>_SESSION_ID, _WORKSPACE_ID, _WORKSPACE_PATH, _TRUST_LEVEL, _USER_ID
// and _TENANT_ID.
//
// It omits the names for which existing returns true: the operator has set them. A nil
// existing stands for none. It includes the two workspace variables even if they are empty,
// because a server can act on "no workspace", and the others only if they are known. None of
// them is a credential.
//
// It omits values with a NUL, a line break or more than 32,767 bytes. With a NUL or an
// overlong value the server would not start. A line break would look like a second variable
// to programs that read a printed environment line by line.
func Environment(c *Context, prefixes []string, existing func(name string) bool) []string {
	variables := []struct {
		suffix, path string
		always       bool
	}{
		{"_SESSION_ID", "session.id", false},
		{"_WORKSPACE_ID", "session.workspace.id", true},
		{"_WORKSPACE_PATH", "session.workspace.path", true},
		{"_TRUST_LEVEL", "session.trust", false},
		{"_USER_ID", "principal.user", false},
		{"_TENANT_ID", "principal.tenant", false},
	}
	var environment []string
	for i, prefix := range prefixes {
		if slices.Contains(prefixes[:i], prefix) {
			continue
		}
		for _, v := range variables {
			name := prefix + v.suffix
			fact, _ := c.Lookup(v.path)
			if fact.Empty() && !v.always || !fitsVariable(fact.Value) || existing != nil && existing(name) {
				continue
			}
			environment = append(environment, name+"="+fact.Value)
		}
	}
	return environment
}

func fitsVariable(value string) bool {
	return len(value) <= maxVariableBytes && !strings.ContainsAny(value, "\x00\r\n")
}
