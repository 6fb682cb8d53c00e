package identity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/sessionstate/identity"
)

// What a token has to be told apart by is said, before any key set is asked for.
func TestTokenShape(t *testing.T) {
	const good = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
	tokens, err := identity.NewTokens(identity.TokenOptions{Issuer: "i", Audience: "a", JWKS: t.TempDir() + "/none.json"})
	if err != nil {
		t.Fatal(err)
	}
	for credential, want := range map[string]string{
		strings.ReplaceAll(good, ".", "=="+".") + "=": "padded with =",
		"Bearer " + good:                        "begins with the word Bearer",
		"bearer " + good:                        "begins with the word Bearer",
		`"` + good + `"`:                        "quotes",
		good[:20] + "\n" + good[20:]:            "a blank or a line break",
		"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEi": "and this 2:",
		"eyJhbGciOiJFUzI1NiJ9":                  "and this 1:",
		"a.b.c.d.e":                             "(JWE)",
		"eyJhbGciOiJFUzI1NiJ9..c2ln":            "part 2 is no base64url",
		"eyJhbGciOiJFUzI1NiJ9.eyJ+.c2ln":        "part 2 is no base64url",
		"eyJhbGciOiJFUzI1NiJ9.e30.c2lnb":        "part 3 is no base64url",
	} {
		p, err := identity.Chain(nil, tokens).Resolve(t.Context(), credential)
		if p != nil || !errors.Is(err, identity.ErrToken) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%q: %v, %v; want %q", credential, p, err, want)
		}
	}
	if _, err := identity.Chain(nil, tokens).Resolve(t.Context(), good); !errors.Is(err, identity.ErrKeySet) {
		t.Errorf("one of the right shape: %v", err)
	}
}
