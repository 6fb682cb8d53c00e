package identity

import (
	"crypto/sha256"
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

// checked remembers tokens that were accepted: over HTTP a client sends its token with each
// request, and to check a signature takes as long as all else that is done for a call. It has the
// SHA-256 of a token, not the token.
type checked struct {
	mu    sync.Mutex
	bySum map[[sha256.Size]byte]*checkedToken
}

// A checkedToken is what a token says whose signature one of the keys of set has made.
type checkedToken struct {
	set       *keySet
	claims    jwt.MapClaims // see validated
	principal *sessionstate.Principal
}

// validated returns the claims that are validated each time, which nobody changes.
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
	c.Roles, c.Permissions = slices.Clone(p.Roles), slices.Clone(p.Permissions)
	return &c
}

// get returns what is remembered of a token, nil for nothing. Whether it still holds is for the
// caller to find out.
func (c *checked) get(token string) *checkedToken {
	if len(token) > maxCheckedBytes {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bySum[sum]
}

// add remembers a token that was accepted.
func (c *checked) add(token string, seen *checkedToken) {
	if len(token) > maxCheckedBytes {
		return
	}
	sum := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bySum == nil || len(c.bySum) >= maxChecked {
		c.bySum = map[[sha256.Size]byte]*checkedToken{} // those that are in use come back
	}
	c.bySum[sum] = seen
}
