package identity

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/sessionstate"
)

// An Identifier says whose a credential is. [Resolver], [Tokens] and what [Chain]
// returns are Identifiers. Errors never contain the credential.
type Identifier interface {
	Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error)
}

var _, _ Identifier = (*Resolver)(nil), (*Tokens)(nil)

// Chain returns an Identifier that gives what looks like a token (see
// [LooksLikeToken]) to tokens and all else to keys. Either may be nil: such
// credentials are then refused with [ErrToken] or [ErrUnknownKey]. What one of them
// refuses is never given to the other.
func Chain(keys, tokens Identifier) Identifier { return chain{keys, tokens} }

type chain struct{ keys, tokens Identifier }

// Resolve implements [Identifier].
func (c chain) Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	switch isToken := LooksLikeToken(credential); {
	case isToken && c.tokens == nil:
		return nil, fmt.Errorf("%w: no issuer is configured: set identity.jwt", ErrToken)
	case isToken:
		return c.tokens.Resolve(ctx, credential)
	case c.keys == nil:
		return nil, fmt.Errorf("%w: no key file is configured: set identity.keys_file", ErrUnknownKey)
	}
	return c.keys.Resolve(ctx, credential)
}

// LooksLikeToken reports whether a credential is to be taken for a token: three
// parts of base64url with dots between them, space around it aside. The signature,
// the last, may be empty, so that an unsigned token is refused as what it is. No
// API key has dots.
func LooksLikeToken(credential string) bool {
	parts := strings.Split(strings.TrimSpace(credential), ".")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" {
		return false
	}
	for _, part := range parts {
		// The decoder passes over line breaks.
		if _, err := base64.RawURLEncoding.DecodeString(part); err != nil || strings.ContainsAny(part, "\r\n") {
			return false
		}
	}
	return true
}
