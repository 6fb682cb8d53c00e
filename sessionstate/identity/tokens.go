package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/attache-mcp/attache/sessionstate"
)

// The errors of [Tokens.Resolve]. The caller treats the session as one without a
// principal and says so once; the text says what a person can do. None contains
// the token or anything that stands in it.
var (
	// ErrToken means that the token cannot be parsed, lacks a required claim, or has one of
	// the wrong type. The issuer or the configured names of claims must change.
	ErrToken = errors.New("token cannot be used")

	// ErrTokenExpired means that the token is past its expiry. Its owner needs a new one.
	ErrTokenExpired = errors.New("token has expired")

	// ErrTokenNotYetValid means that the token becomes valid later, or says that it was issued
	// later. Most often a clock is wrong.
	ErrTokenNotYetValid = errors.New("token is not valid yet")

	// ErrIssuer means that another issuer than the configured one made the token.
	ErrIssuer = errors.New("token is from another issuer")

	// ErrAudience means that the token was made for another audience. Whoever sent it may have
	// received it elsewhere.
	ErrAudience = errors.New("token is for another audience")

	// ErrAlgorithm means that the token is unsigned, signed with a shared secret, or signed in
	// a way that its key does not allow. No honest issuer makes one.
	ErrAlgorithm = errors.New("token is not signed in a way that is accepted")

	// ErrTokenKey means that the issuer's key set has no key of the token's name, also after
	// it was read again.
	ErrTokenKey = errors.New("token is signed by an unknown key")

	// ErrSignature means that the token was changed, or made by somebody without the key that
	// it names.
	ErrSignature = errors.New("signature of the token is wrong")

	// ErrKeySet means that the issuer's key set cannot be read, and that no earlier one may
	// still be used. No token can be checked until that is mended; [Tokens] keeps trying.
	ErrKeySet = errors.New("key set for tokens cannot be used")
)

const (
	// DefaultLeeway is how far the clocks of the issuer and of this machine may be
	// apart.
	DefaultLeeway = 30 * time.Second
	// MaxLeeway is the most that may be configured: a longer one would keep
	// expired tokens alive.
	MaxLeeway = 5 * time.Minute
	// Refresh is how long a key set from a URL is relied on before it is read again, and so the
	// time within which a key that was withdrawn stops to count.
	Refresh = 15 * time.Minute
	// FileRefresh is how long a key set from a file is relied on.
	FileRefresh = time.Minute
	// DefaultTimeout is how long Resolve waits for a key set.
	DefaultTimeout = 2 * time.Second
	// KeepKeys is for how long, beyond the refresh time, the last key set that was
	// read serves while it cannot be read again. After that no token is accepted.
	KeepKeys = time.Hour
	// RetryAfter is the least time between two readings of a key set, also when
	// they fail or when tokens name keys that are not in it. Tokens with made-up
	// keys cause no more requests than that.
	RetryAfter = 10 * time.Second

	maxTokenBytes = 32 << 10
)

// TokenOptions are the options of [NewTokens]. Issuer, Audience and JWKS are
// required.
type TokenOptions struct {
	// Issuer is what the claim "iss" has to be, to the letter.
	Issuer string
	// Audience is what the claim "aud" has to be or contain: the name under which
	// the issuer knows this use of attache.
	Audience string
	// JWKS is where the issuer's public keys are: the path of a file, or an https
	// address (http only to this machine).
	JWKS string
	// Claims says which claims become which fields of the principal.
	Claims Claims
	// Leeway is how far the clocks may be apart, at most [MaxLeeway]; 0 means
	// [DefaultLeeway], and a negative one that they must agree.
	Leeway time.Duration
	// Timeout is how long Resolve waits for a key set; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Kept, if not nil, is called when the key set could not be read again and the last one is
	// used beyond its refresh time, with the reason, once for each outage. Keys that the
	// issuer withdrew meanwhile still count. It is called on a goroutine of its own.
	Kept func(error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Client asks for the key set; nil means one that keeps no connections. Only
	// its Transport is used: redirects are not followed and no cookies are kept.
	Client *http.Client
}

// Tokens finds the owner of a token (JWT). It is safe for use by several goroutines. It keeps
// no token, but the SHA-256 and the content of those that were accepted. It starts nothing when it is
// made, and has a goroutine only while a key set is being read.
type Tokens struct {
	issuer, audience string
	claims           Claims
	parser           *jwt.Parser
	validator        *jwt.Validator // of the same claims as the parser
	keys             *keyCache
	checked          checked
}

// NewTokens returns a Tokens for o. It reads nothing; the first Resolve does. An
// error is a mistake in o.
func NewTokens(o TokenOptions) (*Tokens, error) {
	switch {
	case o.Issuer == "":
		return nil, errors.New("identity.jwt.issuer is missing: write what the claim iss of your tokens is")
	case o.Audience == "":
		return nil, errors.New("identity.jwt.audience is missing: write what the claim aud of your tokens is; without it a token for any other service would do")
	case o.Leeway > MaxLeeway:
		return nil, fmt.Errorf("identity.jwt.leeway %v is too long: %v is the most, set the clocks instead", o.Leeway, MaxLeeway)
	case o.Leeway == 0:
		o.Leeway = DefaultLeeway
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	claims, err := o.Claims.Complete()
	if err != nil {
		return nil, err
	}
	keys, err := newKeyCache(o)
	if err != nil {
		return nil, err
	}
	nameEd25519()
	options := []jwt.ParserOption{
		jwt.WithValidMethods(algorithms),
		jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithLeeway(max(o.Leeway, 0)), jwt.WithTimeFunc(o.Now),
		jwt.WithStrictDecoding(), jwt.WithJSONNumber(),
	}
	return &Tokens{
		issuer: o.Issuer, audience: o.Audience, claims: claims, keys: keys,
		parser: jwt.NewParser(options...), validator: jwt.NewValidator(options...),
	}, nil
}

// nameEd25519 has the library know EdDSA under the name that RFC 9864 gives it with
// that curve, which is the only one the library has.
var nameEd25519 = sync.OnceFunc(func() {
	jwt.RegisterSigningMethod("Ed25519", func() jwt.SigningMethod { return jwt.SigningMethodEdDSA })
})

// Resolve returns the principal of the token. The errors are those above, each with a reason,
// and ctx's own. It reads the key set, from the network or the disk, only if there is none yet, if
// it is too old, or if it lacks the token's key. It waits for that at most as long as the
// timeout.
//
// The principal holds at this moment only: call Resolve again soon to notice that the token
// has expired.
func (t *Tokens) Resolve(ctx context.Context, token string) (*sessionstate.Principal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	token = strings.TrimSpace(token)
	if len(token) > maxTokenBytes {
		return nil, fmt.Errorf("%w: it has more than 32 KiB: have a shorter one issued", ErrToken)
	}
	seen := t.checked.get(token)
	if seen == nil && t.malformed(token) {
		return nil, errMalformed // no key set is asked for so far
	}
	set, err := t.keys.get(ctx, nil)
	if err != nil {
		return nil, err
	}
	if seen != nil && seen.set == set && t.validator.Validate(seen.claims) == nil {
		return copied(seen.principal), nil
	}
	claims, kid, err := t.verify(token, set)
	// The issuer may have a new key. A token that does not name its key shows that
	// only by its signature.
	if errors.Is(err, ErrTokenKey) || errors.Is(err, ErrSignature) && kid == "" {
		newer, failure := t.keys.get(ctx, set)
		switch {
		case failure != nil && errors.Is(failure, ctx.Err()):
			return nil, failure
		case failure != nil:
			return nil, fmt.Errorf("%w; %w", err, failure)
		case newer != set:
			set = newer
			claims, kid, err = t.verify(token, set)
		}
	}
	if err != nil {
		return nil, err
	}
	p, err := t.claims.principal(claims, kid)
	if err == nil {
		t.checked.add(token, &checkedToken{set, validated(claims), copied(p)})
	}
	return p, err
}

// malformed reports whether text does not have the form of a token. The library's decoder ignores
// line breaks.
func (t *Tokens) malformed(text string) bool {
	_, _, err := t.parser.ParseUnverified(text, jwt.MapClaims{})
	return errors.Is(err, jwt.ErrTokenMalformed) || strings.ContainsAny(text, "\r\n")
}

// errMalformed is returned for what is no token at all.
var errMalformed = fmt.Errorf("%w: it is no signed JWT: give the whole token, three parts with dots between them, without quotes or a word in front", ErrToken)

// CheckKeys returns the reason why the key set of the issuer cannot be read, nil if it can.
func (t *Tokens) CheckKeys(ctx context.Context) error {
	_, err := t.keys.get(ctx, nil)
	return err
}

// verify checks the signature of token against set and then its claims. kid is the
// name of the key in the token, which is to be believed only without an error.
func (t *Tokens) verify(token string, set *keySet) (claims jwt.MapClaims, kid string, err error) {
	var asked bool
	var refused error // why there is no key for the token
	claims = jwt.MapClaims{}
	_, err = t.parser.ParseWithClaims(token, claims, func(token *jwt.Token) (any, error) {
		var keys jwt.VerificationKeySet
		asked = true
		if kid, refused = checkHeader(token.Header); refused == nil {
			keys, refused = set.find(kid, token.Method.Alg())
		}
		return keys, refused
	})
	switch {
	case err == nil && misshapen(claims) == "":
		return claims, kid, nil
	case refused != nil:
		return nil, kid, refused
	case errors.Is(err, jwt.ErrTokenMalformed):
		return nil, kid, errMalformed
	case !asked:
		return nil, kid, fmt.Errorf("%w: have it signed with an RSA, ECDSA or Ed25519 key", ErrAlgorithm)
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return nil, kid, fmt.Errorf("%w: have a new token issued", ErrSignature)
	}
	return nil, kid, t.claimsError(claims, err)
}

// claimsError puts what the library found in the claims into our words. Of several
// faults it says the one to be mended first.
func (t *Tokens) claimsError(claims jwt.MapClaims, err error) error {
	switch {
	case errors.Is(err, jwt.ErrTokenInvalidIssuer), claims["iss"] == nil, claims["iss"] == "":
		return fmt.Errorf("%w: have it issued by %q or correct identity.jwt.issuer", ErrIssuer, t.issuer)
	case errors.Is(err, jwt.ErrTokenInvalidAudience), claims["aud"] == nil:
		return fmt.Errorf("%w: have it issued for %q or correct identity.jwt.audience", ErrAudience, t.audience)
	case misshapen(claims) != "":
		return fmt.Errorf("%w: its claim %s: have a new one issued", ErrToken, misshapen(claims))
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return fmt.Errorf("%w: it has no expiry (exp): have one issued that ends", ErrToken)
	case errors.Is(err, jwt.ErrTokenExpired):
		return fmt.Errorf("%w: have a new one issued", ErrTokenExpired)
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return fmt.Errorf("%w: wait, or set the clock of this machine or of the issuer", ErrTokenNotYetValid)
	}
	return fmt.Errorf("%w: its claims do not hold: have a new one issued", ErrToken)
}

// misshapen returns which of the claims that decide whether a token holds is not
// what it has to be, and why; "" if all are. A claim that is not there is for others.
func misshapen(claims jwt.MapClaims) string {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if value, there := claims[name]; there && !isTime(value) {
			return name + " is no number of seconds since 1970 (milliseconds are a thousand times too many)"
		}
	}
	if _, text := claims["iss"].(string); !text && claims["iss"] != nil {
		return "iss is no text"
	}
	if names, err := claims.GetAudience(); err != nil || len(names) == 0 || len(names) == 1 && names[0] == "" {
		return "aud is no text and no list of texts"
	}
	return ""
}

// isTime refuses times after the year 9999. They are milliseconds taken for
// seconds, which never end, or more than fits into a clock, which the library
// turns into something else on each kind of machine.
func isTime(value any) bool {
	n, ok := value.(json.Number)
	if !ok {
		return false
	}
	seconds, err := n.Float64()
	return err == nil && seconds >= 0 && seconds <= 253402300799
}

// checkHeader reads the name of the key in a token's header, "" if there is none,
// and refuses what the rest of the header would have us understand.
func checkHeader(header map[string]any) (kid string, err error) {
	if _, ok := header["crit"]; ok {
		// RFC 7515, section 4.1.11: what is not understood there must be refused.
		return "", fmt.Errorf("%w: it has critical extensions, of which none is known: have one issued without", ErrToken)
	}
	if typ, ok := header["typ"]; ok && !isTokenType(typ) {
		// RFC 8725, section 3.11: an issuer signs other things with the same key.
		return "", fmt.Errorf("%w: it is of another type than JWT or at+jwt: give the access or identity token", ErrToken)
	}
	value, ok := header["kid"]
	if !ok {
		return "", nil
	}
	if kid, ok = value.(string); !ok || kid == "" {
		return "", fmt.Errorf("%w: its key id is no text: have a new one issued", ErrToken)
	}
	return kid, nil
}

func isTokenType(typ any) bool {
	s, _ := typ.(string)
	s = strings.TrimPrefix(strings.ToLower(s), "application/")
	return s == "jwt" || s == "at+jwt"
}
