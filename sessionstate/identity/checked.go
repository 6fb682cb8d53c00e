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
	// maxChecked is how many tokens are remembered, and maxCheckedBytes how long each may be.
	maxChecked      = 1000
	maxCheckedBytes = 8 << 10
)

// checked remembers the tokens that were accepted. Over HTTP, a client sends its token with each
// request, and checking the signature takes about as long as everything else that attache does for
// a call. It stores the SHA-256 of a token, not the token.
type checked struct {
	mu    sync.Mutex
	set   *keySet // of all in bySum
	bySum map[[sha256.Size]byte]*checkedToken
}

// A checkedToken is what an accepted token says. A key of set has signed it.
type checkedToken struct {
	set       *keySet
	claims    jwt.MapClaims // see validated
	principal *sessionstate.Principal
}

// validated returns the claims that are validated with each request. Nobody changes them.
func validated(claims jwt.MapClaims) jwt.MapClaims {
	some := jwt.MapClaims{}
	for _, name := range []string{"iss", "aud", "exp", "nbf", "iat"} {
		if value, there := claims[name]; there {
			some[name] = value
		}
	}
	return some
}

// copied returns a copy of p that shares nothing with it.
func copied(p *sessionstate.Principal) *sessionstate.Principal {
	c := *p
	c.Roles, c.Permissions, c.Asserted = slices.Clone(p.Roles), slices.Clone(p.Permissions), maps.Clone(p.Asserted)
	return &c
}

// get returns what is remembered of a token, nil for nothing. The caller checks whether it still
// holds.
func (c *checked) get(token string) *checkedToken {
	if len(token) > maxCheckedBytes {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bySum[sum]
}

// add remembers a token that was accepted, and forgets those of another key set.
func (c *checked) add(token string, seen *checkedToken) {
	if len(token) > maxCheckedBytes {
		return
	}
	sum := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bySum == nil || c.set != seen.set || len(c.bySum) >= maxChecked {
		c.set, c.bySum = seen.set, map[[sha256.Size]byte]*checkedToken{} // tokens in use are added again
	}
	c.bySum[sum] = seen
}
