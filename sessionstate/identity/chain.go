package identity

import (
	"context"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/sessionstate"
)

// An Identifier returns the owner of a credential. [Resolver], [Tokens] and the result of
// [Chain] are Identifiers. Errors never contain the credential.
type Identifier interface {
	Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error)
}

var _, _ Identifier = (*Resolver)(nil), (*Tokens)(nil)

// Chain returns an Identifier that passes a credential to tokens if [LooksLikeToken], and to
// keys otherwise. If that one is nil, the error is [ErrToken] or [ErrUnknownKey]. A credential
// that one of them refuses is never passed to the other.
func Chain(keys, tokens Identifier) Identifier { return chain{keys, tokens} }

type chain struct{ keys, tokens Identifier }

// Resolve implements [Identifier].
func (c chain) Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	switch isToken := LooksLikeToken(credential); {
	case isToken && c.tokens == nil:
		return nil, fmt.Errorf("%w: no issuer is configured: set identity.jwt, or give an API key, which has no dot in it", ErrToken)
	case isToken:
		return c.tokens.Resolve(ctx, credential)
	case c.keys == nil:
		return nil, fmt.Errorf("%w: no key file is configured: set identity.keys_file", ErrUnknownKey)
	}
	return c.keys.Resolve(ctx, credential)
}

// LooksLikeToken reports whether a credential has a dot, which no API key has, or begins like
// the header of every token. So a truncated or padded token is refused as a token.
func LooksLikeToken(credential string) bool {
	return strings.Contains(credential, ".") || strings.HasPrefix(strings.TrimSpace(credential), "eyJ")
}
