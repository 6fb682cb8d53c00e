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
	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

const (
	Issuer   = "https://issuer.test"
	Audience = "attache"
)

// Key returns the signing key of the issuer.
func Key() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte("a seed that is no secret of ours"))
}

// OtherKey returns a key that the issuer does not have.
func OtherKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte("another seed, no secret of ours "))
}

// KeySet returns the key set of the issuer.
func KeySet() []byte {
	x := base64.RawURLEncoding.EncodeToString(Key().Public().(ed25519.PublicKey))
	return []byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"` + x + `"}]}`)
}

// claims returns the claims of a valid token, with some changed. nil removes a claim.
func claims(changed map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": Issuer, "aud": Audience, "sub": "ada", "org_id": "acme",
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

// Load loads settings as a command with the arguments args does.
func Load(t testing.TB, p cli.Process, args ...string) (*config.Settings, error) {
	t.Helper()
	cmd := &cobra.Command{}
	flags := config.AddFlags(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return config.Load(p, flags, nil)
}

// WriteConfig writes text as the user's configuration, and returns a process that finds it.
func WriteConfig(t testing.TB, text string, env ...string) cli.Process {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "attache", "config.yaml")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, text)
	return cli.Process{Env: env, ConfigDir: dir}
}
