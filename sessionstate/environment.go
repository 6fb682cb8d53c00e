package sessionstate

import "strings"

// longestVariable is what the narrowest platform, Windows, takes as the value of
// a variable. Linux takes four times that.
const longestVariable = 32_767

// Environment returns the variables of c for the wrapped server, as "NAME=value": for each
// prefix <PREFIX>_SESSION_ID, _WORKSPACE_ID, _WORKSPACE_PATH, _TRUST_LEVEL, _USER_ID and
// _TENANT_ID. It skips a prefix with which no variable's name can begin.
//
// It leaves out the names for which existing returns true: they are the operator's. A nil
// existing stands for none. The two variables of the workspace are there even when they are
// empty, because a server can act on "no workspace"; the others are left out when they are not
// known. None of them is a credential.
//
// It leaves out values with a NUL, a line break or more than 32,767 bytes. With a NUL or an
// overlong value the server would not start, and a line break looks like a second variable
// where an environment is printed and read line by line.
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
	seen := make(map[string]bool)
	for _, prefix := range prefixes {
		if !isVariableName(prefix) || seen[prefix] {
			continue
		}
		seen[prefix] = true
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
	return len(value) <= longestVariable && !strings.ContainsAny(value, "\x00\r\n")
}

// isVariableName reports whether s is a name that every shell can use: letters,
// digits and underscores, no digit first.
func isVariableName(s string) bool {
	const letters = "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	return s != "" && strings.Contains(letters, s[:1]) && strings.Trim(s, letters+"0123456789") == ""
}
