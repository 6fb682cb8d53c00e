package assembly

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/filecheck"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// testAuthenticator returns the Authenticator for a configuration and an environment. In both, $DIR
// stands for a directory that has the given files and the key set jwks.json.
func testAuthenticator(t *testing.T, settings string, files map[string]string, env ...string) *Authenticator {
	t.Helper()
	dir := t.TempDir()
	replacer := strings.NewReplacer("$DIR", dir)
	write := func(name, text string) {
		attachetest.WriteFile(t, filepath.Join(dir, name), replacer.Replace(text))
	}
	write("jwks.json", string(attachetest.KeySet()))
	write("config.yaml", settings)
	for name, text := range files {
		write(name, text)
	}
	p := cli.Process{Env: []string{"ATTACHE_CONFIG=" + filepath.Join(dir, "config.yaml")}}
	for _, e := range env {
		p.Env = append(p.Env, replacer.Replace(e))
	}
	s := attachetest.Load(t, p)
	c, err := NewAuthenticator(p, s)
	check(t, err)
	return c
}

const jwtConfig = "identity: {jwt: {issuer: 'https://issuer.test', audience: attache, jwks: jwks.json}}\n"

// All sources together define the principal, and each fact records its origin.
func TestPrincipalSources(t *testing.T) {
	key, hash := testAPIKey(t)
	keys := "keys: [{id: abcdefgh, sha256: " + hash + ", user: kay, tenant: keys, permissions: [k]}]\n"
	session := "user: sue\ntenant: acme\nroles: [host]\ntrust: sandboxed\n"
	meta := "identity: {keys_file: known.yaml, meta_api_key: true, meta_token: true, jwt: {issuer: 'https://issuer.test', audience: attache, jwks: jwks.json}}\n"
	tests := map[string]struct {
		config string
		env    []string
		meta   capture.Credential
		want   string // user tenant roles permissions trust, each with its origin
	}{
		"nobody":                         {config: jwtConfig, want: ""},
		"ATTACHE_TOKEN":                  {config: jwtConfig, env: []string{"ATTACHE_TOKEN=" + attachetest.Token(nil)}, want: "ada(jwt:1) acme(jwt:1)  records:read "},
		"MCP_JWT":                        {config: jwtConfig, env: []string{"MCP_JWT= " + attachetest.Token(nil) + " "}, want: "ada(jwt:1) acme(jwt:1)  records:read "},
		"ATTACHE_TOKEN precedes MCP_JWT": {config: jwtConfig, env: []string{"ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"sub": "bob"}), "MCP_JWT=" + attachetest.Token(nil)}, want: "bob(jwt:1) acme(jwt:1)  records:read "},
		"a token file":                   {config: jwtConfig, env: []string{"ATTACHE_TOKEN_FILE=$DIR/token"}, want: "ada(jwt:1) acme(jwt:1)  records:read "},
		"MCP_JWT is left to the server if no tokens are accepted": {env: []string{"MCP_JWT=" + attachetest.Token(nil)}, want: ""},
		"only the operator's variables":                           {env: []string{"MCP_USER_ID=eve", "MCP_TENANT_ID=evil"}, want: "eve(MCP_USER_ID) evil(MCP_TENANT_ID)   "},
		"operator's variables precede a token, which adds facts": {config: jwtConfig,
			env: []string{"MCP_TENANT_ID=acme", "ATTACHE_TOKEN=" + attachetest.Token(nil)}, want: "ada(jwt:1) acme(MCP_TENANT_ID)  records:read "},
		"session file":                              {env: []string{"ATTACHE_SESSION_FILE=$DIR/session.yaml"}, want: "sue(session file $DIR/session.yaml) acme(session file $DIR/session.yaml) host  sandboxed(session file $DIR/session.yaml)"},
		"variables precede the session file":        {env: []string{"ATTACHE_SESSION_FILE=$DIR/session.yaml", "MCP_USER_ID=sue"}, want: "sue(MCP_USER_ID) acme(session file $DIR/session.yaml) host  sandboxed(session file $DIR/session.yaml)"},
		"session file with only trust":              {env: []string{"ATTACHE_SESSION_FILE=$DIR/trust.yaml"}, want: "    sandboxed(session file $DIR/trust.yaml)"},
		"an API key precedes a token":               {config: meta, env: []string{"ATTACHE_API_KEY=" + key, "ATTACHE_TOKEN=" + attachetest.Token(nil)}, want: "kay(abcdefgh) keys(abcdefgh)  k "},
		"a key in _meta":                            {config: meta, meta: capture.Credential{Key: capture.CredentialKey, Text: key}, want: "kay(abcdefgh) keys(abcdefgh)  k "},
		"a token in _meta":                          {config: meta, meta: capture.Credential{Key: capture.TokenKey, Text: attachetest.Token(nil)}, want: "ada(jwt:1) acme(jwt:1)  records:read "},
		"session file with a token from _meta":      {config: meta, env: []string{"ATTACHE_SESSION_FILE=$DIR/trust.yaml"}, meta: capture.Credential{Key: capture.TokenKey, Text: attachetest.Token(nil)}, want: "ada(jwt:1) acme(jwt:1)  records:read sandboxed(session file $DIR/trust.yaml)"},
		"a key that only the policy endpoint knows": {config: "policy: {url: 'https://policy.test'}", env: []string{"ATTACHE_API_KEY=whatever"}, want: ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := testAuthenticator(t, test.config, map[string]string{
				"known.yaml": keys, "session.yaml": session, "trust.yaml": "trust: odd\n", "token": attachetest.Token(nil) + "\n",
			}, test.env...)
			if accepts := len(c.Accept) > 0; accepts != (test.meta.Text != "") { // the operator's credential counts alone
				t.Errorf("credentials in _meta that are accepted: %q", c.Accept)
			}
			p, err := c.Identify(context.Background(), test.meta)
			check(t, err)
			dir := filepath.Dir(strings.TrimPrefix(c.operator.Origin().Name, "session file "))
			if got := strings.ReplaceAll(describePrincipal(p), dir, "$DIR"); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// describePrincipal returns the facts about p with their origins.
func describePrincipal(p *sessionstate.Principal) string {
	if p == nil {
		return ""
	}
	fact := func(path string) string {
		f, _ := (&sessionstate.Context{Principal: p}).Lookup(path)
		if f.Empty() {
			return ""
		}
		return f.Value + "(" + f.From + ")"
	}
	return strings.Join([]string{
		fact("principal.user"), fact("principal.tenant"), strings.Join(p.Roles, ","), strings.Join(p.Permissions, ","), fact("session.trust"),
	}, " ")
}

func testAPIKey(t *testing.T) (key, hash string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys.yaml")
	key, e := attachetest.CreateKey(t, file, identity.Attributes{})
	return key, e.SHA256
}

// A refused credential identifies nobody, and no other credential is tried. Only the principal that
// the operator sets remains.
func TestRefusedCredentials(t *testing.T) {
	const operator = "eve(MCP_USER_ID)    "
	meta := strings.Replace(jwtConfig, "{jwt", "{meta_api_key: true, meta_token: true, keys_file: keys.yaml, jwt", 1)
	public := []byte(attachetest.Key().Public().(ed25519.PublicKey))
	none := attachetest.SignToken(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "1", nil)
	tests := map[string]struct {
		config string
		env    []string
		meta   capture.Credential
		want   error
		text   string
	}{
		"expired":                        {env: []string{"ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})}, want: identity.ErrTokenExpired, text: "token has expired: have a new one issued"},
		"not yet valid":                  {env: []string{"ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})}, want: identity.ErrTokenNotYetValid, text: "token is not valid yet: wait, or set the clock"},
		"no audience":                    {env: []string{"ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"aud": nil})}, want: identity.ErrAudience, text: `have it issued for "attache"`},
		"for another audience":           {env: []string{"ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"aud": "billing"})}, want: identity.ErrAudience, text: "token is for another audience"},
		"by another issuer":              {env: []string{"ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"iss": "https://evil.test"})}, want: identity.ErrIssuer, text: "identity.jwt.issuer"},
		"unknown key":                    {env: []string{"ATTACHE_TOKEN=" + attachetest.SignToken(jwt.SigningMethodEdDSA, otherKey(), "2", nil)}, want: identity.ErrTokenKey, text: "token is signed by an unknown key"},
		"another key under the known id": {env: []string{"ATTACHE_TOKEN=" + attachetest.SignToken(jwt.SigningMethodEdDSA, otherKey(), "1", nil)}, want: identity.ErrSignature, text: "signature of the token is wrong"},
		"unsigned":                       {env: []string{"ATTACHE_TOKEN=" + none}, want: identity.ErrAlgorithm, text: "not signed in a way that is accepted"},
		"the public key as a secret":     {env: []string{"ATTACHE_TOKEN=" + attachetest.SignToken(jwt.SigningMethodHS256, public, "1", nil)}, want: identity.ErrAlgorithm, text: "not signed in a way that is accepted"},
		"no user":                        {env: []string{"ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"sub": nil})}, want: identity.ErrToken, text: `it has no claim "sub": correct identity.jwt.claims.user`},
		"key set missing": {config: strings.Replace(jwtConfig, "jwks.json", "nothing.json", 1),
			env: []string{"ATTACHE_TOKEN=" + attachetest.Token(nil)}, want: identity.ErrKeySet, text: "nothing.json: no such file"},
		"token file missing":                    {env: []string{"ATTACHE_TOKEN_FILE=$DIR/nothing"}, want: identity.ErrTokenFile, text: "write it or correct the path of the token file"},
		"no issuer":                             {config: "{}", env: []string{"ATTACHE_TOKEN=" + attachetest.Token(nil)}, want: identity.ErrToken, text: "no issuer is configured: set identity.jwt"},
		"a key as a token":                      {config: meta, meta: capture.Credential{Key: capture.TokenKey, Text: "atk_abcdefgh_12345678901234567890123456789012"}, want: identity.ErrToken, text: "send a JWT there"},
		"a token as a key":                      {config: meta, meta: capture.Credential{Key: capture.CredentialKey, Text: attachetest.Token(nil)}, want: identity.ErrToken, text: "it came where an API key belongs"},
		"an unknown API key, and a valid token": {config: meta, env: []string{"ATTACHE_API_KEY=atk_abcdefgh_12345678901234567890123456789012", "ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"sub": "eve"})}, want: identity.ErrFile, text: "keys.yaml"},
		"a bad token, and a valid one":          {env: []string{"ATTACHE_TOKEN=" + none, "MCP_JWT=" + attachetest.Token(map[string]any{"sub": "eve"})}, want: identity.ErrAlgorithm, text: "accepted"},
		"another user's token":                  {env: []string{"ATTACHE_TOKEN=" + attachetest.Token(nil)}, want: sessionstate.ErrOtherPrincipal, text: "correct MCP_USER_ID, MCP_TENANT_ID or the session file"},
		"another user's session file":           {env: []string{"ATTACHE_SESSION_FILE=$DIR/session.yaml"}, want: sessionstate.ErrOtherPrincipal, text: "the session file names another than MCP_USER_ID"},
		"session file missing":                  {env: []string{"ATTACHE_SESSION_FILE=$DIR/nothing.yaml"}, want: identity.ErrSessionFile, text: "write it or correct the path of the session file"},
		"session file missing, and a token":     {env: []string{"ATTACHE_SESSION_FILE=$DIR/nothing.yaml", "ATTACHE_TOKEN=" + attachetest.Token(map[string]any{"sub": "eve"})}, want: identity.ErrSessionFile, text: "nothing.yaml"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.config == "" {
				test.config = jwtConfig
			}
			c := testAuthenticator(t, test.config, map[string]string{"session.yaml": "user: sue\n"}, append(test.env, "MCP_USER_ID=eve")...)
			p, err := c.Identify(context.Background(), test.meta)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v; want %v with %q", err, test.want, test.text)
			}
			if got := describePrincipal(p); got != operator {
				t.Errorf("principal %q; want the operator's, %q", got, operator)
			}
			for _, secret := range append(test.env, test.meta.Text) {
				if _, value, _ := strings.Cut(secret, "="); value != "" && strings.Count(value, ".") == 2 && strings.Contains(err.Error(), value) {
					t.Errorf("the error contains the credential: %v", err)
				}
			}
		})
	}
}

// Mistakes in the identity settings are reported when the configuration is loaded.
func TestIdentitySettingsRefused(t *testing.T) {
	tests := map[string]struct {
		config string
		env    []string
		want   string
	}{
		"no issuer":              {config: "identity: {jwt: {audience: a, jwks: j}}", want: "identity.jwt.issuer is missing"},
		"no audience":            {config: "identity: {jwt: {issuer: i, jwks: j}}", want: "identity.jwt.audience is missing"},
		"no key set":             {config: "identity:\n  jwt:\n    issuer: i\n    audience: a\n", want: "config.yaml:3:5: identity.jwt.jwks is missing"},
		"only claims":            {config: "identity: {jwt: {claims: {user: u}}}", want: "identity.jwt.issuer is missing"},
		"http":                   {config: "identity: {jwt: {issuer: i, audience: a, jwks: 'http://issuer.test/'}}", want: "others could change it: use https"},
		"leeway":                 {config: "identity: {jwt: {issuer: i, audience: a, jwks: j, leeway: 1h}}", want: "identity.jwt.leeway 1h0m0s is too long"},
		"an empty claim":         {config: "identity: {jwt: {issuer: i, audience: a, jwks: j, claims: {user: ''}}}", want: `write the name of a claim, or "-" for none`},
		"a token, not a file":    {config: "identity: {token_file: " + attachetest.Token(nil) + "}", want: "is a token and not a file that holds one"},
		"a line break":           {env: []string{"MCP_USER_ID=ada\nroot"}, want: "MCP_USER_ID: has space around it, a line break"},
		"space around":           {env: []string{"MCP_TENANT_ID= acme"}, want: "MCP_TENANT_ID: has space around it"},
		"a shared secret":        {config: "identity: {jwt: {issuer: i, audience: a, secret: s}}", want: `unknown key "secret"`},
		"a choice of algorithms": {config: "identity: {jwt: {issuer: i, audience: a, algorithms: [none]}}", want: `unknown key "algorithms"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := attachetest.WriteConfig(t, test.config, test.env...)
			_, err := config.Load(p, nil, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v; want one with %q", err, test.want)
			}
		})
	}
}

// A refused value is not also reported as missing.
func TestIdentitySettingsReportedOnce(t *testing.T) {
	for name, text := range map[string]string{
		"an address":  "identity: {jwt: {issuer: i, audience: a, jwks: 'http://issuer.test/'}}",
		"with a user": "identity: {jwt: {issuer: i, audience: a, jwks: 'https://u:p@issuer.test/'}}",
		"a list":      "identity: {jwt: {issuer: i, audience: [a, b], jwks: j}}",
	} {
		t.Run(name, func(t *testing.T) {
			p := attachetest.WriteConfig(t, text)
			_, err := config.Load(p, nil, nil)
			var all setting.Problems
			if !errors.As(err, &all) || len(all) != 1 {
				t.Errorf("want one problem, got %v", err)
			}
		})
	}
}

// A session file that names another user than the operator's variables may belong to another
// session, so its workspace and session are also ignored.
func TestSessionFileOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "session.yaml")
	text := "user: sue\ntenant: acme\nworkspace: " + filepath.ToSlash(dir) + "\nworkspace_id: w\nsession: s\ntrust: direct\n"
	attachetest.WriteFile(t, file, text)
	for user, want := range map[string]string{"sue": "s", "eve": ""} {
		p := attachetest.WriteConfig(t, "{}", "ATTACHE_SESSION_FILE="+file, "MCP_USER_ID="+user)
		s := attachetest.Load(t, p)
		other := errors.Is(s.Operator.FileErr, sessionstate.ErrOtherPrincipal)
		if s.Session.ID != want || (s.Session.Workspace == "") != (want == "") || (s.Session.WorkspaceID == "") != (want == "") || other != (want == "") {
			t.Errorf("for %s: session %+v, error %v", user, s.Session, s.Operator.FileErr)
		}
		if problems := filecheck.Identity(s); len(problems) != map[string]int{"eve": 1}[user] {
			t.Errorf("for %s: reported %v", user, problems)
		}
	}
}

// The issuer is down when attache starts, recovers, and is down again.
func TestIssuerUnreachable(t *testing.T) {
	down := true
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(attachetest.KeySet())
	}))
	t.Cleanup(issuer.Close)
	text := strings.Replace(jwtConfig, "jwks.json", "'"+issuer.URL+"/keys?token=hidden'", 1)
	identify := func(c *Authenticator) error {
		_, err := c.Identify(context.Background(), capture.Credential{})
		return err
	}
	early := testAuthenticator(t, text, nil, "ATTACHE_TOKEN="+attachetest.Token(nil))
	err := identify(early)
	if !errors.Is(err, identity.ErrKeySet) || !temporary(err) || strings.Contains(err.Error(), "hidden") {
		t.Fatalf("at the start: %v; want a temporary error without the query", err)
	}
	down = false
	later := testAuthenticator(t, text, nil, "ATTACHE_TOKEN="+attachetest.Token(nil))
	check(t, identify(later))
	down = true
	if err := identify(later); err != nil {
		t.Errorf("later: %v; want the key set of before to be used", err)
	}
}

// A new token in the file is used from the next look-up on.
func TestTokenFileRotated(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	write := func(token string) {
		attachetest.WriteFile(t, file+".new", token)
		check(t, os.Rename(file+".new", file))
	}
	write(attachetest.Token(nil))
	c := testAuthenticator(t, jwtConfig, nil, "ATTACHE_TOKEN_FILE="+file)
	for _, user := range []string{"ada", "bob"} {
		write(attachetest.Token(map[string]any{"sub": user}))
		p, err := c.Identify(context.Background(), capture.Credential{})
		if err != nil || p.User != user {
			t.Errorf("%v, %v; want %s", p, err, user)
		}
	}
	check(t, os.Remove(file))
	if p, err := c.Identify(context.Background(), capture.Credential{}); p != nil || !errors.Is(err, identity.ErrTokenFile) {
		t.Errorf("%v, %v; want no principal without the file", p, err)
	}
}

// No server gets the operator's credentials in its environment, and they are registered as secrets.
func TestServersGetNoCredentials(t *testing.T) {
	token := attachetest.Token(nil)
	messaging := []string{"CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN"}
	for name, test := range map[string]struct {
		config  string
		removed []string
		passed  []string
	}{
		"tokens are accepted":     {jwtConfig, []string{"ATTACHE_TOKEN", "ATTACHE_API_KEY", "MCP_JWT"}, []string{"MCP_USER_ID", "OTHER"}},
		"tokens are not accepted": {"{}", []string{"ATTACHE_TOKEN", "ATTACHE_API_KEY"}, []string{"MCP_JWT", "MCP_USER_ID", "OTHER"}},
		"telemetry headers": {"{}", []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
			"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "OTEL_EXPORTER_OTLP_LOGS_HEADERS"}, []string{"OTEL_SERVICE_NAME"}},
		"the client's messaging variables": {"{}", messaging, nil},
		"messaging variables allowed":      {"server: {pass_messaging: true}", nil, messaging},
		"messaging variables set":          {"server: {env: {CLAUDE_CODE_MESSAGING_SOCKET: s}}", messaging[1:], messaging[:1]},
	} {
		p := attachetest.WriteConfig(t, test.config, "ATTACHE_TOKEN="+token, "MCP_JWT="+token, "ATTACHE_API_KEY=", "MCP_USER_ID=ada", "OTHER=1",
			"OTEL_EXPORTER_OTLP_HEADERS=a=b", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=a=b", "OTEL_EXPORTER_OTLP_METRICS_HEADERS=a=b",
			"OTEL_EXPORTER_OTLP_LOGS_HEADERS=a=b", "OTEL_SERVICE_NAME=x", messaging[0]+"=/run/s", messaging[1]+"=t")
		s := attachetest.Load(t, p)
		conn, err := Single(Options{Process: p, Log: slog.New(slog.DiscardHandler)}, s, ConnOptions{})
		check(t, err)
		if secrets := conn.Shared().Secrets(); len(secrets) != 1 || secrets[0] != token {
			t.Errorf("%s: %d secrets; want the token", name, len(secrets))
		}
		env := map[string]bool{}
		for _, e := range conn.Environment(p.Env) {
			env[variable(e)] = true
		}
		for _, v := range test.removed {
			if env[v] {
				t.Errorf("%s: the server gets %s", name, v)
			}
		}
		for _, v := range test.passed {
			if !env[v] {
				t.Errorf("%s: the server does not get %s", name, v)
			}
		}
	}
}

// An API key is sent to the policy endpoint, a token is not.
func TestPolicyKey(t *testing.T) {
	shared, err := capture.Compile(capture.Options{})
	check(t, err)
	sessions := shared.Connect(capture.ConnOptions{})
	for credential, want := range map[string]string{"atk_abc_def": "atk_abc_def", attachetest.Token(nil): ""} {
		c := &Authenticator{Own: constant(credential, setting.Origin{})}
		if got := (&Conn{capture: sessions}).policyKey(&Shared{authenticator: c})("s"); got != want {
			t.Errorf("%.10s…: the endpoint gets %.10q; want %q", credential, got, want)
		}
	}
}

// If there is no default key file, the policy endpoint may know the key. HOME of a service may be no directory.
func TestKeysOfPolicyEndpoint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	attachetest.WriteFile(t, file, "")
	for _, dir := range []string{filepath.Dir(file), file} {
		s := attachetest.Load(t, cli.Process{Env: []string{"ATTACHE_POLICY=https://policy.test"}, ConfigDir: dir})
		if p, err := acceptedKeys(s, nil, nil).Resolve(t.Context(), "atk_a_b"); p != nil || err != nil {
			t.Errorf("%s: %v, %v", dir, p, err)
		}
	}
	named := attachetest.Load(t, attachetest.WriteConfig(t, "policy: {url: 'https://policy.test'}\nidentity: {keys_file: missing.yaml}\n"))
	if p, err := acceptedKeys(named, nil, nil).Resolve(t.Context(), "atk_a_b"); !errors.Is(err, identity.ErrFile) {
		t.Errorf("a key file that the configuration names: %v, %v", p, err)
	}
}

// otherKey returns a key that the issuer does not have.
func otherKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte("another seed, no secret of ours "))
}

var check = testkit.Check
