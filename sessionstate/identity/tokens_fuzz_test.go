package identity_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/attache-mcp/attache/sessionstate/identity"
)

// tokenErrors are all that a token can be refused with while its keys are there.
var tokenErrors = []error{
	identity.ErrToken, identity.ErrTokenExpired, identity.ErrTokenNotYetValid, identity.ErrIssuer, identity.ErrAudience,
	identity.ErrAlgorithm, identity.ErrTokenKey, identity.ErrSignature,
}

func isTokenError(err error) bool {
	return slices.ContainsFunc(tokenErrors, func(one error) bool { return errors.Is(err, one) })
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// FuzzToken resolves any text. A principal must be from a token that was signed here. Otherwise
// the error is one of the documented ones, without any part of the token.
func FuzzToken(f *testing.F) {
	tokens := newTokensTest(f, keySetOf(fixed.jwk(nil)), nil)
	// The fuzzer changes whole tokens, and also headers and claims, which are then signed here.
	good := fixed.token(claims(nil), nil)
	f.Add(good)
	f.Add("..")
	f.Add(rehead(good, `{"alg":"none"}`))
	f.Add(rehead(good, `{"alg":"HS256","kid":"ed"}`))
	f.Add(rehead(good, `{"alg":"EdDSA","kid":"ed","kid":"rsa","crit":[]}`))
	f.Add(rehead(good, "{\"alg\":\"RS256\xff\",\"kid\":null}"))
	f.Fuzz(func(t *testing.T, token string) {
		p, err := tokens.Resolve(t.Context(), token)
		if err == nil {
			if strings.TrimSpace(token) != good || p.User != "ada" {
				t.Errorf("%q was taken for %+v", token, p)
			}
			return
		}
		if p != nil || !isTokenError(err) || !printable(err.Error()) {
			t.Errorf("%q gave %v, %q", token, p, err)
		}
	})
}

// FuzzClaims signs any claims. If they are accepted, the fields of the principal are safe for a
// header and a variable.
func FuzzClaims(f *testing.F) {
	tokens := newTokensTest(f, keySetOf(fixed.jwk(nil)), func(o *identity.TokenOptions) {
		o.Claims = identity.Claims{User: "u.v.w", Roles: "r", Permissions: "p", Trust: "t"}
	})
	must := fmt.Sprintf(`"iss":%q,"aud":%q,"exp":%d`, issuer, audience, start.Add(time.Hour).Unix())
	for _, more := range []string{``, `,"u":{"v":{"w":"x"}}`, `,"u.v":{"w":7},"r":["a"],"p":"a b","t":"x"`, `,"exp":1e99,"u.v.w":"x"`, `,"u.v.w":"\ud800"`} {
		f.Add("{" + must + more + "}")
	}
	f.Add("null")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := tokens.Resolve(t.Context(), signed(text))
		if err != nil {
			if p != nil || !isTokenError(err) || !printable(err.Error()) {
				t.Errorf("%q gave %v, %q", text, p, err)
			}
			return
		}
		for _, word := range append(append([]string{p.User, p.Tenant, p.Email}, p.Roles...), p.Permissions...) {
			if strings.ContainsFunc(word, unicode.IsControl) || strings.TrimSpace(word) != word || len(word) > 1024 {
				t.Errorf("%q gave %q", text, word)
			}
		}
		if p.User == "" || p.Trust != "" && p.Trust != "direct" && p.Trust != "sandboxed" {
			t.Errorf("%q gave %+v", text, p)
		}
	})
}

// FuzzSessionFile parses any bytes as a session file. It reads JSON as encoding/json does.
func FuzzSessionFile(f *testing.F) {
	for _, seed := range []string{
		"", "user: ada\n", `{"user":"ada","roles":["a"]}`, "{user: ada}", "user: &a b\ntenant: *a\n", "<<: {user: a}\n", "roles: [[a]]", "user: |\n  a\n",
		"%YAML 1.2\n---\nuser: a\n", `{"user":"\ud800"}`, `{"user":"A\u0064\/\ud83d\ude00: #","workspace":"/W","session":"7C"}`, "{\"user\":\"a\",\"user\":\"b\"}", "? user\n: a\n", "!!binary x", strings.Repeat("[", 100),
	} {
		f.Add([]byte(seed))
	}
	file := filepath.Join(f.TempDir(), "s") // each worker of the fuzzer has its own
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, os.WriteFile(file, data, 0o600))
		s, err := identity.ReadSessionFile(file)
		if err != nil {
			if !errors.Is(err, identity.ErrSessionFile) || (s != identity.SessionFile{}) || !printable(err.Error()) {
				t.Errorf("%q gave %+v, %q", data, s, err)
			}
			return
		}
		words := []string{s.Session, s.Workspace, s.WorkspaceID}
		var object map[string]any
		_ = json.Unmarshal(data, &object) // YAML is not compared
		for name, got := range map[string]string{"session": s.Session, "workspace": s.Workspace, "workspace_id": s.WorkspaceID} {
			if want, ok := object[name].(string); ok && got != want {
				t.Errorf("%q: %s is %q", data, name, got)
			}
		}
		if want, ok := object["user"].(string); ok && want != "" && (s.Principal == nil || s.Principal.User != want) {
			t.Errorf("%q gave %+v", data, s.Principal)
		}
		if s.Principal != nil {
			words = append(words, s.Principal.User, s.Principal.Tenant)
			words = append(words, s.Principal.Roles...)
		}
		for _, word := range words {
			if strings.ContainsFunc(word, unicode.IsControl) {
				t.Errorf("%q gave %q", data, word)
			}
		}
	})
}

// FuzzKeySet parses any bytes as a key set, which verifies no token.
func FuzzKeySet(f *testing.F) {
	f.Add([]byte(keySetOf(fixed.jwk(nil))))
	for _, seed := range []string{`{"keys":[]}`, `{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`, `{"keys":[{"kty":"RSA","n":"AA","e":"AQAB"}]}`, `{"keys":[{"kty":"OKP","crv":"X25519","x":"AA"}]}`, "[]", "{"} {
		f.Add([]byte(seed))
	}
	s := fixed
	s.kid = "of nobody"
	token := s.token(claims(nil), nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := newTokensTest(t, string(data), nil).Resolve(t.Context(), token)
		if p != nil || !errors.Is(err, identity.ErrKeySet) && !isTokenError(err) {
			t.Errorf("%q gave %v, %v", data, p, err)
		}
	})
}
