package identity

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/sessionstate"
)

// Unread is the name of a claim for a field that tokens do not set.
const Unread = "-"

// Claims are the names of the claims that become the fields of a principal. An empty name means
// the default; [Unread] omits a field.
//
// A name first means the claim of that exact name, so names with dots (such as
// "https://acme.example/tenant") work, and then a path into nested claims
// ("realm_access.roles").
type Claims struct {
	User   string // required in every token; the default is "sub"
	Tenant string // the default is "org_id"
	Email  string // the default is "email"
	Roles  string // a list, or one string for one role; the default is "roles"
	// Permissions is a list, or a string of words separated by spaces, as in OAuth's
	// "scope"; the default is "permissions".
	Permissions string
	// Plan, Scope and Trust are not read from tokens by default. Scope is the policy scope and
	// is unrelated to OAuth's. Naming Trust allows the issuer to set "direct".
	Plan, Scope, Trust string
}

// Complete returns c with defaults for empty names.
func (c Claims) Complete() (Claims, error) {
	for _, f := range []struct {
		name             *string
		field, byDefault string
	}{
		{&c.User, "user", "sub"},
		{&c.Tenant, "tenant", "org_id"},
		{&c.Email, "email", "email"},
		{&c.Roles, "roles", "roles"},
		{&c.Permissions, "permissions", "permissions"},
		{&c.Plan, "plan", Unread},
		{&c.Scope, "scope", Unread},
		{&c.Trust, "trust", Unread},
	} {
		if *f.name = cmp.Or(*f.name, f.byDefault); !isWord(*f.name) {
			return Claims{}, fmt.Errorf("identity.jwt.claims.%s %.40q is not the name of a claim: take line breaks, control characters and space around it out", f.field, *f.name)
		}
	}
	return c, nil
}

// principal returns the principal of verified claims. kid is the id of the key that signed them.
func (c Claims) principal(claims map[string]any, kid string) (*sessionstate.Principal, error) {
	r := claimReader{claims: claims}
	p := &sessionstate.Principal{
		KeyID: keyID(kid), User: r.text(c.User), Tenant: r.text(c.Tenant), Email: r.text(c.Email),
		Roles: r.list(c.Roles, oneWord), Permissions: r.list(c.Permissions, strings.Fields), TokenScopes: tokenScopes(claims),
		Plan: r.text(c.Plan), Scope: r.text(c.Scope), Trust: sessionstate.NormalizeTrust(r.text(c.Trust)),
	}
	if r.err != nil {
		return nil, r.err
	}
	// Usually the claims of such a token have other names.
	if p.User == "" && c.User != Unread {
		return nil, fmt.Errorf("%w: it has no claim %q: correct identity.jwt.claims.user", ErrToken, c.User)
	}
	return p, nil
}

// tokenScopes returns the OAuth scopes of a token. Okta and Microsoft name the claim "scp".
func tokenScopes(claims map[string]any) []string {
	for _, name := range []string{"scope", "scp"} {
		r := claimReader{claims: claims}
		if scopes := r.list(name, strings.Fields); r.err == nil && scopes != nil {
			return scopes
		}
	}
	return nil
}

// keyID returns the KeyID of a principal. It names the key and not the token, so that a renewed
// token has the same principal.
func keyID(kid string) string {
	if kid == "" || !isWord(kid) {
		return "jwt"
	}
	return "jwt:" + kid
}

// claimReader reads claims and records the first error.
type claimReader struct {
	claims map[string]any
	err    error
}

// lookUp returns the claim with exactly this name or, if there is none, the first one that name leads to as a
// path into nested claims. It returns nil if there is neither, or name is Unread.
func lookUp(claims map[string]any, name string) any {
	if value, ok := claims[name]; ok && name != Unread {
		return value
	}
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		if inner, ok := claims[name[:i]].(map[string]any); ok {
			if value := lookUp(inner, name[i+1:]); value != nil {
				return value
			}
		}
	}
	return nil
}

// text returns a claim that is a string or a whole number.
func (r *claimReader) text(name string) string {
	switch value := lookUp(r.claims, name).(type) {
	case nil:
	case string:
		return r.word(name, value)
	case json.Number:
		// 1e3 and 1000 are the same number but different strings, so accept only digits.
		if s := value.String(); !strings.ContainsAny(s, ".eE") {
			return r.word(name, s)
		}
		r.fail(name, "is not a whole number")
	default:
		r.fail(name, "is neither text nor a number")
	}
	return ""
}

// list returns a claim that is a list of strings, or a string that split divides.
func (r *claimReader) list(name string, split func(string) []string) []string {
	var texts []string
	switch value := lookUp(r.claims, name).(type) {
	case nil:
	case string:
		texts = split(value)
	case []any:
		for _, element := range value {
			text, ok := element.(string)
			if !ok {
				r.fail(name, "is a list with something other than text in it")
			}
			texts = append(texts, text)
		}
	default:
		r.fail(name, "is neither text nor a list")
	}
	var list []string
	for _, text := range texts {
		if text = r.word(name, text); text != "" {
			list = append(list, text)
		}
	}
	return list
}

func oneWord(s string) []string { return []string{s} }

// word returns s, which must be safe to compare, to print and to write into a header.
func (r *claimReader) word(name, s string) string {
	if !isWord(s) {
		r.fail(name, "is longer than 1024 bytes, or has line breaks, control characters or space around it")
	}
	return s
}

func (r *claimReader) fail(name, reason string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: its claim %q %s: change it at the issuer or correct identity.jwt.claims", ErrToken, name, reason)
	}
}
