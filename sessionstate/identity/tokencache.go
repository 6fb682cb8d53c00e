package identity

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"

	"github.com/golang-jwt/jwt/v5"

	"github.com/attache-mcp/attache/sessionstate"
)

const (
	maxCachedTokens     = 1000
	maxCachedTokenBytes = 8 << 10 // longer tokens are not cached
)

// tokenCache caches accepted tokens. Over HTTP, a client sends its token with each request, and
// checking the signature takes about as long as everything else that attache does for a call.
// The cache stores the SHA-256 of a token, not the token.
type tokenCache struct {
	mu    sync.Mutex
	set   *keySet // of all tokens in bySum
	bySum map[[sha256.Size]byte]*cachedToken
}

// A cachedToken is the content of an accepted token, which a key of set has signed.
type cachedToken struct {
	set       *keySet
	claims    jwt.MapClaims // see validatedClaims
	principal *sessionstate.Principal
}

// validatedClaims returns the claims that must be validated again with each request.
func validatedClaims(claims jwt.MapClaims) jwt.MapClaims {
	some := jwt.MapClaims{}
	for _, name := range []string{"iss", "aud", "exp", "nbf", "iat"} {
		if value, ok := claims[name]; ok {
			some[name] = value
		}
	}
	return some
}

// clonePrincipal returns a deep copy of p.
func clonePrincipal(p *sessionstate.Principal) *sessionstate.Principal {
	c := *p
	c.Roles, c.Permissions, c.TokenScopes = slices.Clone(p.Roles), slices.Clone(p.Permissions), slices.Clone(p.TokenScopes)
	c.Asserted = maps.Clone(p.Asserted)
	return &c
}

// get returns the cached content of a token, nil if there is none. The caller checks whether it
// is still valid.
func (c *tokenCache) get(token string) *cachedToken {
	if len(token) > maxCachedTokenBytes {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bySum[sum]
}

// add caches an accepted token, and removes the tokens of another key set.
func (c *tokenCache) add(token string, content *cachedToken) {
	if len(token) > maxCachedTokenBytes {
		return
	}
	sum := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bySum == nil || c.set != content.set || len(c.bySum) >= maxCachedTokens {
		c.set, c.bySum = content.set, map[[sha256.Size]byte]*cachedToken{} // tokens in use are added again
	}
	c.bySum[sum] = content
}
