package sessionstate

import "strings"

// longestVariable is what the narrowest platform, Windows, takes as the value of
// a variable. Linux takes four times that.
const longestVariable = 32_767

// Environment returns what the wrapped server's environment is to be told of c,
// as "NAME=value": for each prefix <PREFIX>_SESSION_ID, _WORKSPACE_ID,
// _WORKSPACE_PATH, _TRUST_LEVEL, _USER_ID and _TENANT_ID. A prefix that cannot
// begin a variable's name is passed over.
//
// A name for which existing answers true is the operator's and is left alone (nil
// existing: there are none). The two of the workspace are given even when empty,
// for "no workspace" is something a server can act on; the others are left out
// when not known. No credential is among them.
//
// A value with a NUL, a line break or more than 32,767 bytes is left out: a NUL
// or an overlong value would keep the server from starting at all, and a line
// break reads as a second variable wherever an environment is printed and read
// line by line.
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
	given := make(map[string]bool)
	for _, prefix := range prefixes {
		if !isVariableName(prefix) || given[prefix] {
			continue
		}
		given[prefix] = true
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
	for i := range len(s) {
		letter := s[i] == '_' || 'A' <= s[i] && s[i] <= 'Z' || 'a' <= s[i] && s[i] <= 'z'
		if !letter && (i == 0 || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	return s != ""
}
