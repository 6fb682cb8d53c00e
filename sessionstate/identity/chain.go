package identity

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode"

	"github.com/attache-mcp/attache/sessionstate"
)

// An Identifier says whose a credential is. [Resolver], [Tokens] and what [Chain]
// returns are Identifiers. Errors never contain the credential.
type Identifier interface {
	Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error)
}

var _, _ Identifier = (*Resolver)(nil), (*Tokens)(nil)

// Chain returns an Identifier that gives a credential to tokens if [LooksLikeToken], and to
// keys otherwise. Either may be nil: such credentials are then refused with [ErrToken] or
// [ErrUnknownKey]. A credential that one of them refuses is never given to the other.
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

// LooksLikeToken reports whether a credential is a token by its form: it has a dot, which no
// API key has, or begins as the header of every token does. So a token that was cut off or
// padded is refused as a token.
func LooksLikeToken(credential string) bool {
	return strings.Contains(credential, ".") || strings.HasPrefix(strings.TrimSpace(credential), "eyJ")
}

// checkShape says what keeps a credential from being a signed token at all: three
// parts of base64url without padding, with dots between them (RFC 7515, section 7.1).
// The signature, the last, may be empty: that is refused as what it is.
func checkShape(token string) error {
	parts := strings.Split(token, ".")
	word, _, more := strings.Cut(token, " ")
	switch {
	case more && strings.EqualFold(word, "Bearer"):
		return fmt.Errorf("%w: it begins with the word Bearer: give what stands behind it", ErrToken)
	case strings.ContainsAny(token, `"'`):
		return fmt.Errorf("%w: there are quotes in it: give it without", ErrToken)
	case strings.ContainsFunc(token, unicode.IsSpace):
		return fmt.Errorf("%w: there is a blank or a line break in it: give it in one piece", ErrToken)
	case len(parts) == 5:
		return fmt.Errorf("%w: it has five parts, as an encrypted one (JWE): have one issued that is signed only", ErrToken)
	case len(parts) != 3:
		return fmt.Errorf("%w: a JWT has three parts with dots between them, and this %d: was it cut off?", ErrToken, len(parts))
	case strings.Contains(token, "="):
		return fmt.Errorf("%w: it is padded with =, which a JWT is not: have it issued without", ErrToken)
	}
	for i, part := range parts {
		if _, err := base64.RawURLEncoding.DecodeString(part); err != nil || part == "" && i < 2 {
			return fmt.Errorf("%w: part %d is no base64url: was it cut off?", ErrToken, i+1)
		}
	}
	return nil
}
