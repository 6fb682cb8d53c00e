package identity_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

const (
	issuer   = "https://issuer.example/"
	audience = "attache"
	secret   = "s3cretClaimValue" // is in tokens and must never be in an error
)

// signer is a private key with its id.
type signer struct {
	kid    string
	method jwt.SigningMethod
	key    crypto.Signer
}

// fixed is the same key in every process, which fuzzing needs.
var fixed = signer{"ed", jwt.SigningMethodEdDSA, ed25519.NewKeyFromSeed([]byte("a seed that is no secret of ours"))}

var keyring = sync.OnceValue(func() map[string]signer {
	must := func(key crypto.Signer, err error) crypto.Signer {
		if err != nil {
			panic(err)
		}
		return key
	}
	rsaKey := must(rsa.GenerateKey(rand.Reader, 2048))
	return map[string]signer{
		"rsa":   {"rsa", jwt.SigningMethodRS256, rsaKey},
		"rsa2":  {"rsa", jwt.SigningMethodRS256, must(rsa.GenerateKey(rand.Reader, 2048))},
		"ec256": {"ec256", jwt.SigningMethodES256, must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))},
		"ec384": {"ec384", jwt.SigningMethodES384, must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))},
		"ec521": {"ec521", jwt.SigningMethodES512, must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))},
		"ed":    fixed,
	}
})

// jwk returns the public half of s, with extra members.
func (s signer) jwk(extra map[string]any) map[string]any {
	j, err := jwkset.NewJWKFromKey(s.key.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: s.kid}})
	if err != nil {
		panic(err)
	}
	data, err := json.Marshal(j.Marshal())
	if err != nil {
		panic(err)
	}
	members := map[string]any{}
	if err := json.Unmarshal(data, &members); err != nil {
		panic(err)
	}
	maps.Copy(members, extra)
	return members
}

// token signs claims. A nil member of the header is omitted.
func (s signer) token(claims, header map[string]any) string {
	token := jwt.NewWithClaims(s.method, jwt.MapClaims(claims))
	token.Header["kid"] = s.kid
	for name, value := range header {
		if token.Header[name] = value; value == nil {
			delete(token.Header, name)
		}
	}
	text, err := token.SignedString(s.key)
	if err != nil {
		panic(err)
	}
	return text
}

// signed returns a token with any text as its claims, signed by the fixed key.
func signed(text string) string {
	encode := base64.RawURLEncoding.EncodeToString
	unsigned := encode([]byte(`{"alg":"EdDSA","kid":"ed"}`)) + "." + encode([]byte(text))
	signature, err := fixed.method.Sign(unsigned, fixed.key)
	if err != nil {
		panic(err)
	}
	return unsigned + "." + encode(signature)
}

func keySetOf(keys ...map[string]any) string {
	data, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func allKeys() string {
	ring := keyring()
	return keySetOf(ring["rsa"].jwk(nil), ring["ec256"].jwk(nil), ring["ec384"].jwk(nil), ring["ec521"].jwk(nil), ring["ed"].jwk(nil))
}

// claims returns valid claims with some replaced; nil removes a claim.
func claims(changed map[string]any) map[string]any {
	c := map[string]any{
		"iss": issuer, "aud": audience, "exp": start.Add(time.Hour).Unix(), "iat": start.Unix(), "nbf": start.Unix(),
		"sub": "ada", "org_id": "acme", "email": "ada@acme.example", "roles": []string{"developer"}, "permissions": "records:read records:write",
		"plan": "pro", "scope": "openid", "trust": "direct", "password": secret,
	}
	for name, value := range changed {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// A tokensTest is a Tokens with a key set in a file and a clock for tests.
type tokensTest struct {
	*identity.Tokens
	t    testing.TB
	file string
	now  atomic.Int64
}

func newTokensTest(t testing.TB, keys string, change func(*identity.TokenOptions)) *tokensTest {
	t.Helper()
	g := &tokensTest{t: t, file: filepath.Join(t.TempDir(), "jwks.json")}
	put(t, g.file, keys)
	g.at(start)
	o := identity.TokenOptions{Issuer: issuer, Audience: audience, JWKS: g.file, Now: func() time.Time { return time.Unix(0, g.now.Load()) }}
	if change != nil {
		change(&o)
	}
	tokens, err := identity.NewTokens(o)
	check(t, err)
	g.Tokens = tokens
	return g
}

func (g *tokensTest) at(now time.Time)       { g.now.Store(now.UnixNano()) }
func (g *tokensTest) later(by time.Duration) { g.now.Add(int64(by)) }

// want checks that resolving token returns err, and that the error contains no part of the token.
func (g *tokensTest) want(token string, err error) *sessionstate.Principal {
	g.t.Helper()
	p, got := g.Resolve(g.t.Context(), token)
	if !errors.Is(got, err) || (p == nil) != (err != nil) {
		g.t.Fatalf("got %+v, %v; want %v", p, got, err)
	}
	quiet(g.t, token, got)
	return p
}

// quiet checks that err is one line and contains no part of token.
func quiet(t testing.TB, token string, err error) {
	t.Helper()
	text := fmt.Sprintf("%v", err)
	if strings.ContainsAny(text, "\n\r\x1b") || strings.Contains(text, secret) {
		t.Errorf("the error contains too much: %q", text)
	}
	for part := range strings.SplitSeq(token, ".") {
		if len(part) > 8 && strings.Contains(text, part[:8]) {
			t.Errorf("the error quotes the token: %q", text)
		}
	}
}

func TestTokensAlgorithms(t *testing.T) {
	ring := keyring()
	g := newTokensTest(t, allKeys(), nil)
	for name, methods := range map[string][]jwt.SigningMethod{
		"rsa": {
			jwt.SigningMethodRS256, jwt.SigningMethodRS384, jwt.SigningMethodRS512,
			jwt.SigningMethodPS256, jwt.SigningMethodPS384, jwt.SigningMethodPS512,
		},
		"ec256": {jwt.SigningMethodES256}, "ec384": {jwt.SigningMethodES384}, "ec521": {jwt.SigningMethodES512}, "ed": {jwt.SigningMethodEdDSA},
	} {
		for _, method := range methods {
			s := ring[name]
			s.method = method
			want := &sessionstate.Principal{
				KeyID: "jwt:" + name, User: "ada", Tenant: "acme", Email: "ada@acme.example",
				Roles: []string{"developer"}, Permissions: []string{"records:read", "records:write"}, TokenScopes: []string{"openid"},
			}
			if diff := cmp.Diff(want, g.want(" "+s.token(claims(nil), nil)+"\n", nil)); diff != "" {
				t.Errorf("%s (-want +got)\n%s", method.Alg(), diff)
			}
			want.KeyID = "jwt"
			if diff := cmp.Diff(want, g.want(s.token(claims(nil), map[string]any{"kid": nil}), nil)); diff != "" {
				t.Errorf("%s without a key id (-want +got)\n%s", method.Alg(), diff)
			}
		}
	}
	odd := ring["ed"]
	odd.kid = "a\nb"
	if p := newTokensTest(t, keySetOf(odd.jwk(nil)), nil).want(odd.token(claims(nil), nil), nil); p.KeyID != "jwt" {
		t.Errorf("a key id with a line break: %q", p.KeyID)
	}
}

// forged returns a token with any header, unsigned or signed with a shared secret.
func forged(header map[string]any, hmacKey []byte) string {
	method := jwt.SigningMethod(jwt.SigningMethodNone)
	var key any = jwt.UnsafeAllowNoneSignatureType
	if hmacKey != nil {
		method, key = jwt.SigningMethodHS256, hmacKey
	}
	token := jwt.NewWithClaims(method, jwt.MapClaims(claims(nil)))
	maps.Copy(token.Header, header)
	text, err := token.SignedString(key)
	if err != nil {
		panic(err)
	}
	return text
}

// rehead replaces the header of a token.
func rehead(token, header string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + token[strings.Index(token, "."):]
}

func TestTokensRefuseSignatures(t *testing.T) {
	ring := keyring()
	der, err := x509.MarshalPKIXPublicKey(ring["rsa"].key.Public())
	check(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := ring["rsa"].token(claims(nil), nil)
	parts := strings.Split(good, ".")
	other := strings.Split(ring["rsa"].token(claims(map[string]any{"sub": "eve"}), nil), ".")
	stranger := ring["rsa2"]
	unnamed := stranger
	unnamed.kid = "nobody"
	wrongAlg := ring["rsa"]
	wrongAlg.kid = "ec256"
	noKid := map[string]any{"kid": nil}
	tests := []struct {
		name, token string
		want        error
	}{
		{"unsigned", forged(map[string]any{"kid": "rsa"}, nil), identity.ErrAlgorithm},
		{"none in capitals", rehead(parts[0]+"."+parts[1]+".", `{"alg":"NONE","kid":"rsa"}`), identity.ErrAlgorithm},
		{"no algorithm", rehead(good, `{"kid":"rsa"}`), identity.ErrAlgorithm},
		{"algorithm that is a number", rehead(good, `{"alg":256,"kid":"rsa"}`), identity.ErrAlgorithm},
		{"unknown algorithm", rehead(good, `{"alg":"`+secret+`","kid":"rsa"}`), identity.ErrAlgorithm},
		{"public key as a shared secret", forged(map[string]any{"kid": "rsa"}, public), identity.ErrAlgorithm},
		{"public key bytes as a shared secret", forged(map[string]any{"kid": "ed"}, ring["ed"].key.Public().(ed25519.PublicKey)), identity.ErrAlgorithm},
		{"the id of a key of another kind", wrongAlg.token(claims(nil), nil), identity.ErrAlgorithm},
		{"signature removed", parts[0] + "." + parts[1] + ".", identity.ErrSignature},
		{"claims of another token", parts[0] + "." + other[1] + "." + parts[2], identity.ErrSignature},
		{"another's key under a known id", stranger.token(claims(nil), nil), identity.ErrSignature},
		{"another's key without an id", stranger.token(claims(nil), noKid), identity.ErrSignature},
		{"another's key in the token", stranger.token(claims(nil), map[string]any{"jwk": stranger.jwk(nil), "jku": "http://127.0.0.1:1/" + secret, "x5u": "http://127.0.0.1:1/"}), identity.ErrSignature},
		{"unknown id", unnamed.token(claims(nil), nil), identity.ErrTokenKey},
		{"id that is a path", ring["rsa"].token(claims(nil), map[string]any{"kid": "../../" + secret}), identity.ErrTokenKey},
		{"id that is empty", ring["rsa"].token(claims(nil), map[string]any{"kid": ""}), identity.ErrToken},
		{"id that is a number", ring["rsa"].token(claims(nil), map[string]any{"kid": 1}), identity.ErrToken},
		{"critical extension", ring["rsa"].token(claims(nil), map[string]any{"crit": []string{"exp"}}), identity.ErrToken},
		{"a log-out token", ring["rsa"].token(claims(nil), map[string]any{"typ": "logout+jwt"}), identity.ErrToken},
		{"empty", "", identity.ErrToken},
		{"an API key", "atk_x7k2m4qa_ABCDEFGHABCDEFGHABCDEFGHABCDEFGH", identity.ErrToken},
		{"two parts", parts[0] + "." + parts[1], identity.ErrToken},
		{"five parts", good + ".a.b", identity.ErrToken},
		{"padding", parts[0] + "." + parts[1] + "." + parts[2] + "=", identity.ErrToken},
		{"not base64", parts[0] + "." + parts[1] + "!." + parts[2], identity.ErrToken},
		{"a signature that is not base64", parts[0] + "." + parts[1] + ".!", identity.ErrToken},
		{"not JSON", "aGFsbG8." + parts[1] + "." + parts[2], identity.ErrToken},
		{"null", rehead(good, "null"), identity.ErrAlgorithm},
		{"too long", ring["rsa"].token(claims(map[string]any{"x": strings.Repeat("x", 32<<10)}), nil), identity.ErrToken},
	}
	g := newTokensTest(t, allKeys(), nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g.t = t
			g.want(test.token, test.want)
		})
	}
	g.t = t
	g.want(good, nil)
	g.want(ring["rsa"].token(claims(nil), map[string]any{"typ": "application/at+jwt"}), nil)
}

func TestTokensClaims(t *testing.T) {
	at := func(d time.Duration) int64 { return start.Add(d).Unix() }
	leeway := identity.DefaultLeeway
	tests := []struct {
		name    string
		changed map[string]any
		want    error
	}{
		{"another issuer", map[string]any{"iss": "https://issuer.example"}, identity.ErrIssuer},
		{"no issuer", map[string]any{"iss": nil}, identity.ErrIssuer},
		{"issuers", map[string]any{"iss": []string{issuer}}, identity.ErrToken},
		{"another audience", map[string]any{"aud": secret}, identity.ErrAudience},
		{"other audiences", map[string]any{"aud": []string{"a", "Attache"}}, identity.ErrAudience},
		{"one of the audiences", map[string]any{"aud": []string{"a", audience}}, nil},
		{"one of the audiences after an empty one", map[string]any{"aud": []string{"", audience}}, nil},
		{"no audience", map[string]any{"aud": nil}, identity.ErrAudience},
		{"empty audience", map[string]any{"aud": []string{}}, identity.ErrAudience},
		{"audience of the wrong type", map[string]any{"aud": 1}, identity.ErrToken},
		{"no expiry", map[string]any{"exp": nil}, identity.ErrToken},
		{"expiry as text", map[string]any{"exp": "2030-01-01"}, identity.ErrToken},
		{"expiry null", map[string]any{"exp": json.RawMessage("null")}, identity.ErrToken},
		{"overflowing expiry", map[string]any{"exp": json.RawMessage("1e400")}, identity.ErrToken},
		{"expiry in milliseconds", map[string]any{"exp": start.Add(time.Hour).UnixMilli()}, identity.ErrToken},
		{"negative expiry", map[string]any{"exp": -1}, identity.ErrToken},
		{"just expired", map[string]any{"exp": at(-leeway)}, identity.ErrTokenExpired},
		{"expired within the leeway", map[string]any{"exp": at(-leeway + time.Second)}, nil},
		{"long expired, for another", map[string]any{"exp": 1, "aud": "b"}, identity.ErrAudience},
		{"not yet", map[string]any{"nbf": at(leeway + time.Second)}, identity.ErrTokenNotYetValid},
		{"not yet within the leeway", map[string]any{"nbf": at(leeway)}, nil},
		{"issued in the future", map[string]any{"iat": at(leeway + time.Second)}, identity.ErrTokenNotYetValid},
		{"issued within the leeway", map[string]any{"iat": at(leeway)}, nil},
		{"no nbf and iat", map[string]any{"nbf": nil, "iat": nil}, nil},
		{"nbf of the wrong type", map[string]any{"nbf": "now"}, identity.ErrToken},
		{"no user", map[string]any{"sub": nil}, identity.ErrToken},
		{"empty user", map[string]any{"sub": ""}, identity.ErrToken},
		{"user that is an object", map[string]any{"sub": map[string]any{"a": secret}}, identity.ErrToken},
		{"user that is not Unicode", map[string]any{"sub": json.RawMessage(`"a\ud800"`)}, identity.ErrToken},
		{"tenant with a line break", map[string]any{"org_id": secret + "\nx"}, identity.ErrToken},
		{"tenant with space", map[string]any{"org_id": " " + secret}, identity.ErrToken},
		{"tenant that is true", map[string]any{"org_id": true}, identity.ErrToken},
		{"tenant that is half a number", map[string]any{"org_id": 1.5}, identity.ErrToken},
		{"tenant too long", map[string]any{"org_id": strings.Repeat(secret, 100)}, identity.ErrToken},
		{"roles that are an object", map[string]any{"roles": map[string]any{}}, identity.ErrToken},
		{"a role that is a number", map[string]any{"roles": []any{"a", 1}}, identity.ErrToken},
		{"a permission with a control character", map[string]any{"permissions": []string{secret + "\x1b"}}, identity.ErrToken},
	}
	g := newTokensTest(t, allKeys(), nil)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g.t = t
			g.want(keyring()["ed"].token(claims(test.changed), nil), test.want)
		})
	}
}

// An error names the claim to correct, and its type.
func TestTokensNameTheClaim(t *testing.T) {
	inMilliseconds := start.Add(time.Hour).UnixMilli()
	const seconds = "is not a number of seconds since 1970 (milliseconds are a thousand times too many)"
	tests := []struct {
		changed map[string]any
		want    string
	}{
		{map[string]any{"exp": inMilliseconds}, "its claim exp " + seconds},
		{map[string]any{"nbf": inMilliseconds}, "its claim nbf " + seconds},
		{map[string]any{"iat": "2030-01-01"}, "its claim iat " + seconds},
		{map[string]any{"exp": json.RawMessage("null")}, "its claim exp " + seconds},
		{map[string]any{"exp": nil}, "it has no expiry (exp)"},
		{map[string]any{"iss": 7}, "its claim iss is not text"},
		{map[string]any{"iss": ""}, "token is from another issuer"},
		{map[string]any{"aud": []any{audience, 7}}, "its claim aud is neither text nor a list of texts"},
		{map[string]any{"aud": []string{}}, "token is for another audience"},
		{map[string]any{"aud": ""}, "its claim aud is neither text nor a list of texts"},
	}
	g := newTokensTest(t, allKeys(), nil)
	for _, test := range tests {
		_, err := g.Resolve(t.Context(), keyring()["ed"].token(claims(test.changed), nil))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %s", test.changed, err, test.want)
		}
	}
}

// The URL of the server counts as an audience, as it is configured and as most clients write it.
func TestTokensResource(t *testing.T) {
	for _, test := range []struct {
		resource, audience string
		want               error
	}{
		{"https://MCP.example:443", "https://MCP.example:443", nil},
		{"https://MCP.example:443", "https://mcp.example/", nil},
		{"http://mcp.example:80/a", "http://mcp.example/a", nil},
		{"https://mcp.example:8443/a", "https://mcp.example:8443/a", nil},
		{"https://mcp.example:8443/a", "https://mcp.example/a", identity.ErrAudience},
		{"https://mcp.example/a", "https://mcp.example/", identity.ErrAudience},
		{"https://mcp.example/a", audience, nil},
		{"", "/", identity.ErrAudience},
	} {
		g := newTokensTest(t, allKeys(), func(o *identity.TokenOptions) { o.Resource = test.resource })
		g.want(keyring()["ed"].token(claims(map[string]any{"aud": test.audience}), nil), test.want)
	}
}

func TestTokensLeeway(t *testing.T) {
	token := keyring()["ed"].token(claims(nil), nil)
	for leeway, last := range map[time.Duration]time.Duration{-1: 0, identity.MaxLeeway: identity.MaxLeeway} {
		g := newTokensTest(t, allKeys(), func(o *identity.TokenOptions) { o.Leeway = leeway })
		g.at(start.Add(time.Hour + last - 1))
		g.want(token, nil)
		g.at(start.Add(time.Hour + last))
		g.want(token, identity.ErrTokenExpired)
	}
}

// A client sends its token with each request. The signature is checked only once per key set.
func TestTokensAreRemembered(t *testing.T) {
	g := newTokensTest(t, allKeys(), nil)
	token := keyring()["rsa"].token(claims(nil), nil)
	first := g.want(token, nil)
	if again := g.want(token, nil); !cmp.Equal(first, again) {
		t.Errorf("%+v, then %+v", first, again)
	}
	remembered := testing.AllocsPerRun(100, func() { g.want(token, nil) })
	changed := token[:len(token)-4] + "AAAA"
	if refused := testing.AllocsPerRun(100, func() { g.want(changed, identity.ErrSignature) }); remembered > refused/4 {
		t.Errorf("%v allocations for a cached token, %v for one that is checked", remembered, refused)
	}
}

func TestTokensMapping(t *testing.T) {
	tests := []struct {
		name    string
		names   identity.Claims
		changed map[string]any
		want    sessionstate.Principal
	}{
		{
			"all of them",
			identity.Claims{User: "uid", Tenant: "t", Email: "m", Roles: "r", Permissions: "scope", Plan: "plan", Scope: "team", Trust: "trust"},
			map[string]any{"uid": 42, "t": "acme", "m": "a@b", "r": "team lead", "scope": " a:read  b:write ", "team": "acme/x"},
			sessionstate.Principal{
				User: "42", Tenant: "acme", Email: "a@b", Roles: []string{"team lead"}, Permissions: []string{"a:read", "b:write"},
				TokenScopes: []string{"a:read", "b:write"}, Plan: "pro", Scope: "acme/x", Trust: sessionstate.Direct,
			},
		},
		{
			"unknown trust", identity.Claims{Email: "-", Roles: "-", Permissions: "-", Trust: "trust"},
			map[string]any{"trust": "root", "-": "x", "scope": 7, "scp": []string{"a", "b"}},
			sessionstate.Principal{User: "ada", Tenant: "acme", TokenScopes: []string{"a", "b"}, Trust: sessionstate.Sandboxed},
		},
		{
			"nested and with dots",
			identity.Claims{Tenant: "https://acme.example/tenant", Email: "a.b.c", Roles: "realm_access.roles", Permissions: "x.my.client.roles"},
			map[string]any{
				"https://acme.example/tenant": "t1", "a": map[string]any{"b": map[string]any{"c": "a@b"}},
				"realm_access": map[string]any{"roles": []string{"r"}}, "x": map[string]any{"my.client": map[string]any{"roles": []string{"p", ""}}},
			},
			sessionstate.Principal{User: "ada", Tenant: "t1", Email: "a@b", Roles: []string{"r"}, Permissions: []string{"p"}, TokenScopes: []string{"openid"}},
		},
		{
			"a path through what is no object", identity.Claims{Tenant: "org_id.name", Email: "none.of.these", Roles: "roles.0"}, nil,
			sessionstate.Principal{User: "ada", Permissions: []string{"records:read", "records:write"}, TokenScopes: []string{"openid"}},
		},
		{
			"nobody by name", identity.Claims{User: identity.Unread, Email: "-", Roles: "-", Permissions: "-"}, map[string]any{"sub": nil},
			sessionstate.Principal{Tenant: "acme", TokenScopes: []string{"openid"}},
		},
		{
			"nothing given", identity.Claims{}, map[string]any{"org_id": nil, "email": json.RawMessage("null"), "roles": []string{}, "permissions": "", "scope": nil},
			sessionstate.Principal{User: "ada"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := newTokensTest(t, allKeys(), func(o *identity.TokenOptions) { o.Claims = test.names })
			test.want.KeyID = "jwt:ed"
			if diff := cmp.Diff(&test.want, g.want(keyring()["ed"].token(claims(test.changed), nil), nil)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNewTokensRefuses(t *testing.T) {
	for _, test := range []struct {
		change func(*identity.TokenOptions)
		says   string
	}{
		{func(o *identity.TokenOptions) { o.Issuer = "" }, "identity.jwt.issuer is missing"},
		{func(o *identity.TokenOptions) { o.Audience = "" }, "identity.jwt.audience is missing"},
		{func(o *identity.TokenOptions) { o.JWKS = "" }, "identity.jwt.jwks is missing"},
		{func(o *identity.TokenOptions) { o.Leeway = time.Hour }, "identity.jwt.leeway 1h0m0s is too long"},
		{func(o *identity.TokenOptions) { o.Claims.Plan = "a\nb" }, `identity.jwt.claims.plan "a\nb" is not the name`},
		{func(o *identity.TokenOptions) { o.JWKS = "http://keys.example/" + secret }, "others could change it: use https"},
		{func(o *identity.TokenOptions) { o.JWKS = "http://127.0.0.1.example/" }, "use https"},
		{func(o *identity.TokenOptions) { o.JWKS = "http://localhost@keys.example/" }, "use https"},
		{func(o *identity.TokenOptions) { o.JWKS = "ftp://keys.example/" }, "use https"},
		{func(o *identity.TokenOptions) { o.JWKS = "ftp://localhost/" }, "use https"},
		{func(o *identity.TokenOptions) { o.JWKS = "file:///etc/jwks.json" }, "is not an address"},
		{func(o *identity.TokenOptions) { o.JWKS = "https://a:" + secret + "@keys.example/" }, "has a user name in it"},
		{func(o *identity.TokenOptions) { o.JWKS = "https://%zz/" }, "is not an address"},
	} {
		o := identity.TokenOptions{Issuer: issuer, Audience: audience, JWKS: "https://keys.example/jwks"}
		if _, err := identity.NewTokens(o); err != nil {
			t.Fatal(err)
		}
		test.change(&o)
		tokens, err := identity.NewTokens(o)
		if tokens != nil || !strings.Contains(fmt.Sprint(err), test.says) || strings.Contains(fmt.Sprint(err), secret) {
			t.Errorf("got %v; want an error that says %q", err, test.says)
		}
	}
}

func TestKeySetChoosesKeys(t *testing.T) {
	ring := keyring()
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	check(t, err)
	weak := signer{"weak", jwt.SigningMethodRS256, small}
	ps := ring["rsa"]
	ps.method = jwt.SigningMethodPS256
	bad := map[string]any{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "bad"}
	tests := []struct {
		name string
		set  string
		by   signer
		want error
	}{
		{"one key", keySetOf(ring["rsa"].jwk(nil)), ring["rsa"], nil},
		{"for signatures", keySetOf(ring["rsa"].jwk(map[string]any{"use": "sig", "key_ops": []string{"verify"}})), ring["rsa"], nil},
		{"for encryption", keySetOf(ring["rsa"].jwk(map[string]any{"use": "enc"})), ring["rsa"], identity.ErrTokenKey},
		{"for other uses", keySetOf(ring["rsa"].jwk(map[string]any{"key_ops": []string{"encrypt"}})), ring["rsa"], identity.ErrTokenKey},
		{"of one algorithm", keySetOf(ring["rsa"].jwk(map[string]any{"alg": "PS256"})), ps, nil},
		{"of one algorithm, another used", keySetOf(ring["rsa"].jwk(map[string]any{"alg": "PS256"})), ring["rsa"], identity.ErrAlgorithm},
		{"of an algorithm of another kind", keySetOf(ring["rsa"].jwk(map[string]any{"alg": "HS256"})), ring["rsa"], identity.ErrTokenKey},
		{"Ed25519 by its new name", keySetOf(ring["ed"].jwk(map[string]any{"alg": "Ed25519"})), ring["ed"], nil},
		{"Ed25519 of an algorithm of another kind", keySetOf(ring["ed"].jwk(map[string]any{"alg": "RS256"})), ring["ed"], identity.ErrTokenKey},
		{"too short", keySetOf(weak.jwk(nil)), weak, identity.ErrTokenKey},
		{"too long", keySetOf(ring["rsa"].jwk(map[string]any{"n": base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{1}, 1025))})), ring["rsa"], identity.ErrTokenKey}, // 8193 bits
		{"next to unknown keys", keySetOf(bad, map[string]any{"kty": "AKP"}, map[string]any{"kty": "oct", "k": "AA", "kid": "ed"}, map[string]any{"kty": 1}, ring["ed"].jwk(nil)), ring["ed"], nil},
		{"two with the same id", keySetOf(ring["rsa2"].jwk(nil), ring["rsa"].jwk(nil)), ring["rsa"], nil},
		{"with another's certificate address", keySetOf(ring["ed"].jwk(map[string]any{"x5u": "http://127.0.0.1:1/"})), ring["ed"], nil},
		{"with its private half", keySetOf(ring["ed"].jwk(map[string]any{"d": "AA"})), ring["ed"], nil},
		{"no keys", `{"keys": []}`, ring["ed"], identity.ErrTokenKey},
		{"not a key set", `{}`, ring["ed"], identity.ErrKeySet},
		{"null", `null`, ring["ed"], identity.ErrKeySet},
		{"a page", "<html>" + secret, ring["ed"], identity.ErrKeySet},
		{"too many", `{"keys":[{}` + strings.Repeat(",{}", 100) + `]}`, ring["ed"], identity.ErrKeySet},
		{"too large", strings.Repeat(" ", 1<<20) + allKeys(), ring["ed"], identity.ErrKeySet},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			newTokensTest(t, test.set, nil).want(test.by.token(claims(nil), nil), test.want)
		})
	}
}

// In RFC 9864, EdDSA with Ed25519 has the name of the curve.
func TestTokensNewName(t *testing.T) {
	ring := keyring()
	g := newTokensTest(t, allKeys(), nil)
	header := map[string]any{"alg": "Ed25519"}
	g.want(ring["ed"].token(claims(nil), header), nil)
	g.want(ring["rsa"].token(claims(nil), header), identity.ErrAlgorithm)
	g.want(ring["ec256"].token(claims(nil), header), identity.ErrAlgorithm)
	other := signer{"ed", jwt.SigningMethodEdDSA, ed25519.NewKeyFromSeed([]byte("a seed that is another's, not it."[:32]))}
	g.want(other.token(claims(nil), header), identity.ErrSignature)
}

func TestKeySetFile(t *testing.T) {
	token := keyring()["ed"].token(claims(nil), nil)
	g := newTokensTest(t, allKeys(), nil)
	check(t, os.Remove(g.file))
	g.want(token, identity.ErrKeySet)
	put(t, g.file, allKeys())
	g.want(token, identity.ErrKeySet) // not read again so soon
	g.later(identity.RetryAfter)
	g.want(token, nil)
	newTokensTest(t, "\ufeff"+allKeys(), nil).want(token, nil)

	dir := newTokensTest(t, allKeys(), func(o *identity.TokenOptions) { o.JWKS = filepath.Dir(o.JWKS) })
	dir.want(token, identity.ErrKeySet)
	if runtime.GOOS == "windows" {
		return
	}
	for mode, want := range map[os.FileMode]error{0o644: nil, 0o664: identity.ErrKeySet, 0o646: identity.ErrKeySet} {
		g := newTokensTest(t, allKeys(), nil)
		check(t, os.Chmod(g.file, mode))
		g.want(token, want)
	}
}

// keyServer serves a key set that can be changed, and counts requests.
type keyServer struct {
	*httptest.Server
	asked atomic.Int64
	body  atomic.Value // string
	code  atomic.Int64
}

func newKeyServer(t *testing.T, body string) *keyServer {
	s := &keyServer{}
	s.body.Store(body)
	s.code.Store(http.StatusOK)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(int(s.code.Load()))
		_, _ = w.Write([]byte(s.body.Load().(string)))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) want(t *testing.T, asked int64) {
	t.Helper()
	if got := s.asked.Load(); got != asked {
		t.Errorf("the server got %d requests, want %d", got, asked)
	}
}

func newRemote(t *testing.T, url string) *tokensTest {
	return newTokensTest(t, "", func(o *identity.TokenOptions) { o.JWKS = url + "/jwks?" + secret })
}

func TestKeySetRotation(t *testing.T) {
	ring := keyring()
	server := newKeyServer(t, keySetOf(ring["rsa"].jwk(nil)))
	g := newRemote(t, server.URL)
	server.want(t, 0) // nothing before first use
	old, next := ring["rsa"].token(claims(nil), nil), ring["ed"].token(claims(nil), nil)
	for range 3 {
		g.want(old, nil)
	}
	server.want(t, 1)

	g.want(next, identity.ErrTokenKey)
	server.want(t, 1) // it was read just now
	server.body.Store(keySetOf(ring["rsa"].jwk(nil), ring["ed"].jwk(nil)))
	g.later(identity.RetryAfter)
	g.want(next, nil)
	g.want(old, nil)
	server.want(t, 2)

	// Tokens with invented keys cause at most one request each time.
	unknown := ring["ed"]
	for i := range 10 {
		unknown.kid = fmt.Sprint(i)
		g.want(unknown.token(claims(nil), nil), identity.ErrTokenKey)
	}
	server.want(t, 2)
	g.later(identity.RetryAfter)
	for range 10 {
		g.want(unknown.token(claims(nil), nil), identity.ErrTokenKey)
	}
	server.want(t, 3)

	// A withdrawn key works until the set is read again.
	server.body.Store(keySetOf(ring["ed"].jwk(nil)))
	g.later(identity.Refresh - 1)
	g.want(old, nil)
	g.later(1)
	g.want(old, identity.ErrTokenKey)
	g.want(next, nil)
	server.want(t, 4)
}

// If a token does not name its key, only its signature shows a rotation.
func TestKeySetRotationWithoutIDs(t *testing.T) {
	ring := keyring()
	server := newKeyServer(t, keySetOf(ring["rsa"].jwk(map[string]any{"kid": ""})))
	g := newRemote(t, server.URL)
	noKid := map[string]any{"kid": nil}
	g.want(ring["rsa"].token(claims(nil), noKid), nil)
	server.body.Store(keySetOf(ring["rsa2"].jwk(map[string]any{"kid": ""})))
	g.later(identity.RetryAfter)
	g.want(ring["rsa2"].token(claims(nil), noKid), nil)
	g.want(ring["rsa"].token(claims(nil), noKid), identity.ErrSignature)
	server.want(t, 2)
}

func TestKeySetUnreachable(t *testing.T) {
	ring := keyring()
	token := ring["ed"].token(claims(map[string]any{"exp": start.Add(24 * time.Hour).Unix()}), nil)
	server := newKeyServer(t, allKeys())
	g := newRemote(t, server.URL)
	for i, code := range []int{500, 404, 301, 302, 204, 401} {
		server.code.Store(int64(code))
		g.want(token, identity.ErrKeySet)
		_, err := g.Resolve(t.Context(), token)
		if !errors.Is(err, identity.ErrKeySet) || strings.Contains(err.Error(), "write the address it leads to") != (code/100 == 3) {
			t.Errorf("status %d: got %v", code, err)
		}
		server.want(t, int64(i+1)) // a redirect was not followed
		g.later(identity.RetryAfter)
	}
	server.code.Store(200)
	g.want(token, nil)
	server.want(t, 7)

	// Later the last key set is used for a bounded time, and new keys are unknown.
	server.code.Store(503)
	g.later(identity.Refresh)
	g.want(token, nil)
	g.want(token, nil)
	server.want(t, 8)
	stranger := ring["ed"]
	stranger.kid = "new"
	_, err := g.Resolve(t.Context(), stranger.token(claims(nil), nil))
	if !errors.Is(err, identity.ErrTokenKey) || !errors.Is(err, identity.ErrKeySet) || !strings.Contains(err.Error(), "status 503") {
		t.Errorf("got %v", err)
	}
	g.later(identity.KeepKeys - 1)
	g.want(token, nil)
	server.want(t, 9)
	g.later(identity.RetryAfter)
	g.want(token, identity.ErrKeySet)
	server.code.Store(200)
	g.later(identity.RetryAfter)
	g.want(token, nil)

	server.Close()
	_, err = newRemote(t, server.URL).Resolve(t.Context(), token)
	if !errors.Is(err, identity.ErrKeySet) || !strings.Contains(err.Error(), server.URL+"/jwks: ") {
		t.Errorf("got %v", err)
	}
	quiet(t, token, err)
}

// While the last key set is used because it cannot be read again, withdrawn keys still work. This
// is reported once for each outage.
func TestKeySetKept(t *testing.T) {
	var reports []string
	g := newTokensTest(t, allKeys(), func(o *identity.TokenOptions) {
		o.Kept = func(err error) { reports = append(reports, err.Error()) }
	})
	token := keyring()["ed"].token(claims(map[string]any{"exp": start.Add(24 * time.Hour).Unix()}), nil)
	wantTold := func(n int) {
		t.Helper()
		if len(reports) != n || n > 0 && !strings.Contains(reports[n-1], g.file+": ") {
			t.Fatalf("reports %q, want %d", reports, n)
		}
	}
	outage := func() {
		t.Helper()
		check(t, os.Remove(g.file))
		g.later(identity.FileRefresh)
		g.want(token, nil)
	}
	g.want(token, nil)
	wantTold(0)
	outage()
	wantTold(1)
	g.later(identity.RetryAfter)
	g.want(token, nil)
	wantTold(1)

	put(t, g.file, allKeys())
	g.later(identity.RetryAfter)
	g.want(token, nil)
	wantTold(1)
	outage()
	wantTold(2)

	// A set that is too old is not used, which the error says.
	put(t, g.file, allKeys())
	g.later(identity.RetryAfter)
	g.want(token, nil)
	check(t, os.Remove(g.file))
	g.later(identity.FileRefresh + identity.KeepKeys)
	g.want(token, identity.ErrKeySet)
	wantTold(2)

	// Nor is one that was read in the future, because the clock was set back.
	put(t, g.file, allKeys())
	g.later(identity.RetryAfter)
	g.want(token, nil)
	check(t, os.Remove(g.file))
	g.later(-time.Minute)
	g.want(token, identity.ErrKeySet)
}

// If the server does not answer, each caller waits at most for the timeout. A request whose caller
// gives up continues for the others.
func TestKeySetSlow(t *testing.T) {
	release := make(chan struct{})
	arrived := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-release:
			_, _ = w.Write([]byte(allKeys()))
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	token := keyring()["ed"].token(claims(nil), nil)

	impatient := newTokensTest(t, "", func(o *identity.TokenOptions) { o.JWKS, o.Timeout = server.URL, time.Millisecond })
	_, err := impatient.Resolve(t.Context(), token)
	if !errors.Is(err, identity.ErrKeySet) || !strings.Contains(err.Error(), "no answer within 1ms") {
		t.Errorf("got %v", err)
	}

	g := newTokensTest(t, "", func(o *identity.TokenOptions) { o.JWKS, o.Timeout = server.URL, time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := g.Resolve(ctx, token)
		gone <- err
	}()
	<-arrived
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if _, err := g.Resolve(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	wg.Wait()
}

func TestTokensAtTheSameTime(t *testing.T) {
	server := newKeyServer(t, allKeys())
	g := newRemote(t, server.URL)
	token := keyring()["ec256"].token(claims(nil), nil)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := g.Resolve(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	server.want(t, 1)
}

func TestTokensCancelled(t *testing.T) {
	server := newKeyServer(t, allKeys())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newRemote(t, server.URL).Resolve(ctx, "a.b.c"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	server.want(t, 0)
}

func TestKeySetOverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(allKeys())) }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	token := keyring()["ed"].token(claims(nil), nil)
	newTokensTest(t, "", func(o *identity.TokenOptions) { o.JWKS, o.Client = server.URL, server.Client() }).want(token, nil)
	newTokensTest(t, "", func(o *identity.TokenOptions) { o.JWKS = server.URL }).want(token, identity.ErrKeySet)
}

func BenchmarkTokens(b *testing.B) {
	for _, name := range []string{"rsa", "ec256", "ed"} {
		b.Run(name, func(b *testing.B) {
			tokens := newTokensTest(b, allKeys(), nil)
			token := keyring()[name].token(claims(nil), nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tokens.Resolve(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
