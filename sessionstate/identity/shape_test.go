package identity_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A malformed token is refused without reading the key set.
func TestTokenShape(t *testing.T) {
	const good = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"
	tokens, err := identity.NewTokens(identity.TokenOptions{Issuer: "i", Audience: "a", JWKS: t.TempDir() + "/none.json"})
	check(t, err)
	for _, credential := range []string{
		strings.ReplaceAll(good, ".", "=="+".") + "=",
		"Bearer " + good,
		"bearer " + good,
		`"` + good + `"`,
		good[:20] + "\n" + good[20:],
		"eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhZGEi",
		"eyJhbGciOiJFUzI1NiJ9",
		"a.b.c.d.e",
		"eyJhbGciOiJFUzI1NiJ9..c2ln",
		"eyJhbGciOiJFUzI1NiJ9.eyJ+.c2ln",
	} {
		p, err := identity.Chain(nil, tokens).Resolve(t.Context(), credential)
		if p != nil || !errors.Is(err, identity.ErrToken) || !strings.Contains(err.Error(), "not a signed JWT") || strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%q: %v, %v", credential, p, err)
		}
	}
	if _, err := identity.Chain(nil, tokens).Resolve(t.Context(), good); !errors.Is(err, identity.ErrKeySet) {
		t.Errorf("a token of the right form: %v", err)
	}
}
