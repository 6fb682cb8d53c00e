package clientconfig

import (
	"slices"
	"strings"
)

// secretFlags are the words that mark a flag with a secret, from servers on npm and PyPI: --api-key,
// --access-token, --figma-api-key, --db-password.
var secretFlags = []string{"key", "apikey", "token", "secret", "password", "passwd", "credential", "credentials", "auth", "authorization", "pat", "header"}

// hideArguments adds the arguments that are secrets to p.secrets.
func (p *Plan) hideArguments(looksSecret func(string) bool) {
	for _, step := range p.Steps {
		if step.Entry.args == nil {
			continue
		}
		behindFlag := false
		for _, item := range step.Entry.args.items {
			flag, _, assigned := strings.Cut(item.value, "=")
			named := secretFlag(flag)
			if item.value != "" && (behindFlag && !strings.HasPrefix(item.value, "-") || named && assigned || looksSecret != nil && looksSecret(item.value)) {
				p.secrets = append(p.secrets, item.span)
			}
			behindFlag = named && !assigned
		}
	}
	slices.SortFunc(p.secrets, func(a, b span) int { return a.from - b.from })
	p.secrets = slices.Compact(p.secrets)
}

// secretFlag reports whether the value of flag is a secret. The path of a file with a secret is not.
func secretFlag(flag string) bool {
	name, ok := strings.CutPrefix(flag, "-")
	if !ok && strings.ToUpper(flag) != flag { // NAME=value is a variable, as for env
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c == '-' || c == '_' })
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secretFlags, w) }) &&
		!slices.Contains(words, "file") && !slices.Contains(words, "path")
}
