package clientconfig

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

func isHTTP(address string) bool {
	return strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://")
}

// variables matches what clients replace in an address: ${NAME}, ${env:NAME}, {env:NAME} and $NAME.
var variables = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$?\{[^{}]*\}|\$\w+`) })

// plainWords matches words that are not part of a token, such as the first two in working-penguin-AbC123, a profile of
// Smithery.
var plainWords = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[A-Z]?[a-z]{3,}\b`) })

// parseAddress replaces each variable in an address by a word, and parses the result. secret reports whether the
// address has a secret: a variable or a query parameter with the name of one, such as exaApiKey or access_token, or a
// parameter's value or a part of the path that looks like a token. If the address cannot be parsed, u is empty.
func parseAddress(address string) (u *url.URL, secret bool, err error) {
	plain := variables().ReplaceAllStringFunc(address, func(variable string) string {
		name, _, _ := strings.Cut(strings.Trim(variable, "${}"), ":-") // ${NAME:-default} of Claude Code
		secret = secret || namesSecret(name)
		return "0"
	})
	if u, err = url.Parse(plain); err != nil {
		return &url.URL{}, secret, err
	}
	// url.Values leaves out a parameter with a stray % or a semicolon, which servers get all the same.
	for _, parameter := range strings.FieldsFunc(u.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		if plain, err := url.QueryUnescape(parameter); err == nil {
			parameter = plain
		}
		name, value, _ := strings.Cut(parameter, "=")
		secret = secret || namesSecret(name) || slices.ContainsFunc(strings.Split(plainWords().ReplaceAllString(value, ""), ","), looksRandom)
	}
	before := ""
	for part := range strings.SplitSeq(u.Path, "/") {
		secret = secret || looksRandom(part) || uuid().MatchString(part) && !hasIDs(before)
		before = part
	}
	return u, secret, nil
}

// uuid matches a UUID. In the path of an address it is a token of Make (/mcp/u/UUID/stateless) or the only secret of a
// server of n8n (/mcp/UUID), unless the part before it has identifiers.
var uuid = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`) })

// hasIDs reports whether a UUID after this part of a path is an identifier: after the plural of a word, as in addresses of
// Microsoft (/mcp/environments/UUID/servers/NAME), or after one such as project, as in addresses of Langflow
// (/api/v1/mcp/project/UUID/streamable).
func hasIDs(part string) bool {
	return len(part) > 1 && strings.HasSuffix(part, "s") || slices.Contains([]string{"project", "tenant", "workspace"}, part)
}

// namesSecret reports whether name, such as exaApiKey, ends in the word for a secret.
func namesSecret(name string) bool {
	return slices.ContainsFunc(secretFlags, func(w string) bool { return strings.HasSuffix(strings.ToLower(name), w) })
}

// looksRandom reports whether a part of an address looks like a token. A token has 20 characters or more, with digits
// and with letters of both cases, as in addresses of Zapier. Or it has 32 letters and digits or more in a row, such as
// the key in addresses of Firecrawl (fc- and 32 hexadecimal digits). A part of up to 40 hexadecimal digits and nothing
// else is an identifier, as in addresses of Databricks.
func looksRandom(part string) bool {
	mixed := part != strings.ToLower(part) && part != strings.ToUpper(part)
	if len(part) >= 20 && mixed && strings.ContainsAny(part, "0123456789") {
		return true
	}
	words := strings.FieldsFunc(part, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return slices.ContainsFunc(words, func(w string) bool {
		identifier := w == part && len(w) <= 40 && strings.Trim(w, "0123456789abcdefABCDEF") == ""
		return len(w) >= 32 && strings.ContainsAny(w, "0123456789") && strings.ContainsFunc(w, unicode.IsLetter) && !identifier
	})
}
