package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/attache-mcp/attache/sessionstate"
)

const (
	// DefaultLeeway is the default of [TokenOptions].Leeway.
	DefaultLeeway = 30 * time.Second
	// MaxLeeway is the longest leeway: a longer one would keep expired tokens valid.
	MaxLeeway = 5 * time.Minute
	// DefaultTimeout is the default of [TokenOptions].Timeout.
	DefaultTimeout = 2 * time.Second

	maxTokenBytes = 32 << 10
)

// TokenOptions are the options of [NewTokens]. Issuer, Audience and JWKS are
// required.
type TokenOptions struct {
	// Issuer is the exact value of the claim "iss".
	Issuer string
	// Audience must be equal to the claim "aud" or an element of it. It is the name by which
	// the issuer knows this use of attache.
	Audience string
	// Resource, if not empty, is accepted in "aud" instead of Audience. It is the URL of the
	// server, which clients name when they ask the issuer for a token (RFC 8707); its normal form is
	// accepted too.
	Resource string
	// JWKS is the location of the issuer's public keys: the path of a file, or an https
	// address (http only to this machine).
	JWKS string
	// Claims maps claims to the fields of the principal.
	Claims Claims
	// Leeway is the allowed difference between the clocks of the issuer and this machine, at
	// most [MaxLeeway]; 0 means [DefaultLeeway], and a negative value none.
	Leeway time.Duration
	// Timeout is how long Resolve waits for a key set; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Kept, if not nil, is called once for each outage, with the reason, when the key set
	// cannot be read and the last one is used beyond its refresh time. Keys that the issuer
	// withdrew meanwhile still work. It is called on another goroutine.
	Kept func(error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Client requests the key set; nil means one that keeps no connections. Only its
	// Transport is used: redirects are not followed and no cookies are stored.
	Client *http.Client
}

// Tokens finds the owner of a token (JWT). It is safe for use by several goroutines. It stores
// the SHA-256 and the claims of accepted tokens, but no token. It has a goroutine only while it
// reads a key set.
type Tokens struct {
	issuer, audience string // audience is quoted, for messages
	claims           Claims
	parser           *jwt.Parser
	validator        *jwt.Validator // checks the same claims as parser
	keys             *keyCache
	cache            tokenCache
}

// NewTokens returns a Tokens for o. It reads nothing; the first Resolve does. An error means
// that o is invalid.
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
	keys, err := newKeyCache(o.JWKS, o.Client)
	if err != nil {
		return nil, err
	}
	keys.timeout, keys.now, keys.onStale = cmp.Or(o.Timeout, DefaultTimeout), o.Now, o.Kept
	nameEd25519()
	audience, audiences := strconv.Quote(o.Audience), []string{o.Audience}
	if o.Resource != "" {
		audience += " or " + strconv.Quote(o.Resource)
		audiences = append(audiences, o.Resource, normalURL(o.Resource))
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(algorithms),
		jwt.WithIssuer(o.Issuer), jwt.WithAudience(audiences...),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(),
		jwt.WithLeeway(max(o.Leeway, 0)), jwt.WithTimeFunc(o.Now),
		jwt.WithStrictDecoding(), jwt.WithJSONNumber(),
	}
	return &Tokens{
		issuer: o.Issuer, audience: audience, claims: claims, keys: keys,
		parser: jwt.NewParser(options...), validator: jwt.NewValidator(options...),
	}, nil
}

// normalURL returns address as most clients send it, because they parse the URL first: the host in
// lower case, without the default port, and "/" for an empty path (WHATWG URL Standard).
func normalURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Host = strings.ToLower(u.Host)
	if port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]; port != "" {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	u.Path = cmp.Or(u.Path, "/")
	return u.String()
}

// nameEd25519 registers EdDSA with the library also under Ed25519, its name in RFC 9864 with
// the only curve that the library supports.
var nameEd25519 = sync.OnceFunc(func() {
	jwt.RegisterSigningMethod("Ed25519", func() jwt.SigningMethod { return jwt.SigningMethodEdDSA })
})

// Resolve returns the principal of the token. The errors are those above, each with a reason,
// and the context's error. Resolve reads the key set, from the network or the disk, only if
// there is none yet, if it is too old, or if it lacks the token's key, and waits for it at most
// until the timeout.
//
// The principal is valid only now: call Resolve again soon, because the token expires.
func (t *Tokens) Resolve(ctx context.Context, token string) (*sessionstate.Principal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	token = strings.TrimSpace(token)
	if len(token) > maxTokenBytes {
		return nil, fmt.Errorf("%w: it has more than 32 KiB: have a shorter one issued", ErrToken)
	}
	cached := t.cache.get(token)
	if cached == nil && t.malformed(token) {
		return nil, errMalformed // without reading the key set
	}
	set, err := t.keys.get(ctx, nil)
	if err != nil {
		return nil, err
	}
	// With another set the signature is checked again: the issuer may have withdrawn the key.
	if cached != nil && cached.set == set && t.validator.Validate(cached.claims) == nil {
		return clonePrincipal(cached.principal), nil
	}
	claims, kid, err := t.verify(token, set)
	// The issuer may have a new key. If the token does not name its key, a wrong signature is
	// the only sign of that.
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
		t.cache.add(token, &cachedToken{set, validatedClaims(claims), clonePrincipal(p)})
	}
	return p, err
}

// malformed reports whether text does not have the form of a token. The library ignores line
// breaks, so malformed looks for them.
func (t *Tokens) malformed(text string) bool {
	_, _, err := t.parser.ParseUnverified(text, jwt.MapClaims{})
	return errors.Is(err, jwt.ErrTokenMalformed) || strings.ContainsAny(text, "\r\n")
}

// errMalformed is returned for credentials that do not have the form of a token.
var errMalformed = fmt.Errorf("%w: it is not a signed JWT: give the whole token, three parts with dots between them, without quotes or a word in front", ErrToken)

// CheckKeys returns an error if the issuer's key set cannot be read.
func (t *Tokens) CheckKeys(ctx context.Context) error {
	_, err := t.keys.get(ctx, nil)
	return err
}

// verify checks the signature of token against set and then its claims. kid is the key id in
// the token. Do not trust it if there is an error. The token is not malformed.
func (t *Tokens) verify(token string, set *keySet) (claims jwt.MapClaims, kid string, err error) {
	var called bool
	var keyErr error // why there is no key for the token
	claims = jwt.MapClaims{}
	_, err = t.parser.ParseWithClaims(token, claims, func(token *jwt.Token) (any, error) {
		var keys jwt.VerificationKeySet
		called = true
		if kid, keyErr = checkHeader(token.Header); keyErr == nil {
			keys, keyErr = set.find(kid, token.Method.Alg())
		}
		return keys, keyErr
	})
	switch {
	case err == nil && typeFault(claims) == "":
		return claims, kid, nil
	case keyErr != nil:
		return nil, kid, keyErr
	case !called: // the library refuses the algorithm before it asks for the key
		return nil, kid, fmt.Errorf("%w: have it signed with an RSA, ECDSA or Ed25519 key", ErrAlgorithm)
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return nil, kid, fmt.Errorf("%w: have a new token issued", ErrSignature)
	}
	return nil, kid, t.claimsError(claims, err)
}

// claimsError returns attache's error for an error of the library in the claims. Of several
// faults it reports the one to correct first.
func (t *Tokens) claimsError(claims jwt.MapClaims, err error) error {
	switch {
	case errors.Is(err, jwt.ErrTokenInvalidIssuer), claims["iss"] == nil, claims["iss"] == "":
		return fmt.Errorf("%w: have it issued by %q or correct identity.jwt.issuer", ErrIssuer, t.issuer)
	case errors.Is(err, jwt.ErrTokenInvalidAudience), claims["aud"] == nil, isEmptyList(claims["aud"]): // Ory Hydra sends [] by default
		return fmt.Errorf("%w: have it issued for %s, or correct identity.jwt.audience", ErrAudience, t.audience)
	case typeFault(claims) != "":
		return fmt.Errorf("%w: its claim %s: have a new one issued", ErrToken, typeFault(claims))
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		return fmt.Errorf("%w: it has no expiry (exp): have one issued that ends", ErrToken)
	case errors.Is(err, jwt.ErrTokenExpired):
		return fmt.Errorf("%w: have a new one issued", ErrTokenExpired)
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		return fmt.Errorf("%w: wait, or set the clock of this machine or of the issuer", ErrTokenNotYetValid)
	}
	return fmt.Errorf("%w: its claims are not valid: have a new one issued", ErrToken)
}

// typeFault returns the first of the claims that decide whether a token is valid that has a
// wrong type, with the reason; "" if there is none. It ignores missing times.
func typeFault(claims jwt.MapClaims) string {
	for _, name := range []string{"exp", "nbf", "iat"} {
		if value, there := claims[name]; there && !isTime(value) {
			return name + " is not a number of seconds since 1970 (milliseconds are a thousand times too many)"
		}
	}
	if _, text := claims["iss"].(string); !text {
		return "iss is not text"
	}
	if names, err := claims.GetAudience(); err != nil || len(names) == 0 || len(names) == 1 && names[0] == "" {
		return "aud is neither text nor a list of texts"
	}
	return ""
}

func isEmptyList(value any) bool {
	list, ok := value.([]any)
	return ok && len(list) == 0
}

// isTime reports whether value is a number of seconds up to the year 9999. Larger numbers are
// milliseconds in place of seconds, with which a token would never expire, or overflow, which
// the library converts differently on each kind of machine.
func isTime(value any) bool {
	n, ok := value.(json.Number)
	if !ok {
		return false
	}
	seconds, err := n.Float64()
	return err == nil && seconds >= 0 && seconds <= 253402300799
}

// checkHeader returns the key id in a token's header, "" if there is none. It refuses critical
// extensions and other types of tokens.
func checkHeader(header map[string]any) (kid string, err error) {
	if _, ok := header["crit"]; ok {
		// RFC 7515, section 4.1.11: unknown critical extensions must be refused.
		return "", fmt.Errorf("%w: it has critical extensions, of which none is known: have one issued without", ErrToken)
	}
	if typ, ok := header["typ"]; ok && !isTokenType(typ) {
		// RFC 8725, section 3.11: an issuer signs other kinds of tokens with the same key.
		return "", fmt.Errorf("%w: it is of another type than JWT or at+jwt: give the access or identity token", ErrToken)
	}
	value, ok := header["kid"]
	if !ok {
		return "", nil
	}
	if kid, ok = value.(string); !ok || kid == "" {
		return "", fmt.Errorf("%w: its key id is not text: have a new one issued", ErrToken)
	}
	return kid, nil
}

func isTokenType(typ any) bool {
	s, _ := typ.(string)
	s = strings.TrimPrefix(strings.ToLower(s), "application/")
	return s == "jwt" || s == "at+jwt"
}
