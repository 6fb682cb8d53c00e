// Package attachetest provides configurations and tokens for the tests of several packages.
package attachetest

import (
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// Key returns the signing key of the issuer.
func Key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte("a seed that is no secret of ours"))
}

// KeySet returns the key set of the issuer.
func KeySet() []byte {
	x := base64.RawURLEncoding.EncodeToString(Key().Public().(ed25519.PublicKey))
	return []byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"` + x + `"}]}`)
}

// claims returns the claims of a valid token, with some changed. nil removes a claim.
func claims(changed map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": "https://issuer.test", "aud": "attache", "sub": "ada", "org_id": "acme",
		"exp": time.Now().Add(time.Hour).Unix(), "permissions": "records:read",
	}
	for name, value := range changed {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// Token returns a token of the issuer, with some claims changed.
func Token(changed map[string]any) string {
	return SignToken(jwt.SigningMethodEdDSA, Key(), "1", changed)
}

// SignToken returns a token signed with key, with some claims changed.
func SignToken(method jwt.SigningMethod, key any, kid string, changed map[string]any) string {
	token := jwt.NewWithClaims(method, claims(changed))
	token.Header["kid"] = kid
	text, err := token.SignedString(key)
	if err != nil {
		panic(err)
	}
	return text
}

// CreateKey adds an API key of an owner to a key file.
func CreateKey(t testing.TB, file string, owner identity.Attributes) (key string, entry identity.Entry) {
	t.Helper()
	key, entry, err := identity.Create(file, owner, "", 0, time.Now())
	testkit.Check(t, err)
	return key, entry
}

// Load loads the settings that p finds.
func Load(t testing.TB, p cli.Process) *config.Settings {
	t.Helper()
	s, err := config.Load(p, nil, nil)
	testkit.Check(t, err)
	return s
}

// WriteConfig writes text as the user's configuration, and returns a process that finds it.
func WriteConfig(t testing.TB, text string, env ...string) cli.Process {
	t.Helper()
	dir := t.TempDir()
	WriteFile(t, filepath.Join(dir, "attache", "config.yaml"), text)
	return cli.Process{Env: env, ConfigDir: dir}
}

// WriteFile writes a file that only the user can read, and creates missing directories.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	testkit.Check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Check(t, os.WriteFile(path, []byte(text), 0o600))
}
