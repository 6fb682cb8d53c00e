package assembly

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// An Authenticator says who the sessions of one run act for: what the operator says, and
// below it what the one credential of a session says, the operator's or, where he
// gives none and allows it, the client's. A credential that is refused is never
// replaced by another.
type Authenticator struct {
	operator config.OperatorSettings
	Own      Credential
	keys     identity.Identifier // nil if there are none
	tokens   identity.Identifier // nil if no issuer is configured
	Accept   []string            // where in _meta a credential counts
}

// A Credential is the credential that the operator gives the sessions.
type Credential struct {
	Text func() (string, error) // nil if there is none
	From setting.Origin
	// secret is the credential where it cannot change.
	secret string
	// unused is another one that was given and does not count.
	unused setting.Origin
}

// NewAuthenticator returns the Authenticator for s. It opens the database with the keys, if they
// are in one. An error is a mistake in the settings.
func NewAuthenticator(p cli.Process, s *config.Settings) (*Authenticator, error) {
	db, err := OpenDatabase(p, s, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	var keys *keyDatabase
	if db != nil {
		keys = openKeys(db)
	}
	return newAuthenticator(p, s, keys, nil, nil)
}

// newAuthenticator is NewAuthenticator with the keys of the process, nil for the key file. keptKeys
// and keptTokens are told why keys that were read before hold although their file, or the key set
// for tokens, cannot be read again; see [identity.Options] and [identity.TokenOptions].
func newAuthenticator(p cli.Process, s *config.Settings, db *keyDatabase, keptKeys, keptTokens func(error)) (*Authenticator, error) {
	own, err := OperatorCredential(p, s)
	if err != nil {
		return nil, err
	}
	c := &Authenticator{operator: s.Operator, Own: own, keys: acceptedKeys(s, db, keptKeys)}
	if s.Identity.AcceptsTokens() {
		o := s.Identity.Tokens()
		o.Kept = keptTokens
		if c.tokens, err = identity.NewTokens(o); err != nil {
			return nil, err
		}
	}
	if own.Text != nil {
		return c, nil
	}
	if s.Identity.MetaAPIKey {
		c.Accept = append(c.Accept, capture.CredentialKey)
	}
	if s.Identity.MetaToken {
		c.Accept = append(c.Accept, capture.TokenKey)
	}
	return c, nil
}

// authenticator returns the Authenticator for settings, with the keys that were read
// under before.
func (p *process) authenticator(settings *config.Settings, before *Shared) (*Authenticator, error) {
	who, err := newAuthenticator(p.Process, settings, p.keys, func(err error) {
		p.Log.Warn("the key file was changed and is not valid; the keys read before hold for ten times identity.cache at most", "err", err)
	}, func(err error) {
		p.Log.Warn("the key set for tokens cannot be read again; the keys read before hold for an hour at most, withdrawn ones too", "err", err)
	})
	if err != nil || before == nil {
		return who, err
	}
	was := before.authenticator
	if o, n := before.settings.Identity, settings.Identity; o.KeysFile == n.KeysFile && o.Cache == n.Cache {
		if keys, ok := was.keys.(*identity.Resolver); ok {
			who.keys = keys
		}
	}
	if was.tokens != nil && config.SameValues(before.settings, settings, "identity.jwt") {
		who.tokens = was.tokens
	}
	return who, nil
}

// OperatorCredential returns the operator's credential: the API key, or where there is
// none the token.
func OperatorCredential(p cli.Process, s *config.Settings) (Credential, error) {
	key, from, err := config.APIKey(p, s)
	if err != nil {
		return Credential{}, err
	}
	token := ownToken(p, s)
	if key == "" {
		return token, nil
	}
	own := fixed(key.Reveal(), from)
	if token.Text != nil {
		own.unused = token.From
	}
	return own, nil
}

func fixed(credential string, from setting.Origin) Credential {
	return Credential{Text: func() (string, error) { return credential, nil }, From: from, secret: credential}
}

// ownToken returns the operator's token. The flag --token-file stands above the
// variables that hold a token, and these above ATTACHE_TOKEN_FILE and the
// configuration file. MCP_JWT is not a name of ours: it may be meant for the
// server, unless tokens are accepted here.
func ownToken(p cli.Process, s *config.Settings) Credential {
	file := s.Origin("identity.token_file")
	if file.Name != "--token-file" {
		if token := strings.TrimSpace(p.Getenv(config.TokenVariable)); token != "" {
			return fixed(token, setting.Origin{Name: config.TokenVariable})
		}
		if token := strings.TrimSpace(p.Getenv(config.JWTVariable)); token != "" && s.Identity.AcceptsTokens() {
			return fixed(token, setting.Origin{Name: config.JWTVariable})
		}
	}
	if s.Identity.TokenFile == "" {
		return Credential{}
	}
	return Credential{Text: identity.TokenFile(s.Identity.TokenFile), From: file}
}

// acceptedKeys returns what knows API keys, nil if nothing does. A file that is not
// there identifies nobody, and says so when a key comes, unless the key is one that
// the policy endpoint alone knows.
func acceptedKeys(s *config.Settings, db *keyDatabase, kept func(error)) identity.Identifier {
	if db != nil {
		return newSharedKeys(db, s)
	}
	if s.Policy.URL != "" && s.Origin("identity.keys_file").Default() {
		if _, err := os.Stat(s.Identity.KeysFile); errors.Is(err, fs.ErrNotExist) {
			return endpointKeys{}
		}
	}
	if s.Identity.KeysFile == "" {
		return nil
	}
	// A principal is held for nearly identity.cache more, so together it is ten times.
	return identity.New(identity.Options{File: s.Identity.KeysFile, Cache: readAgain(s), Kept: kept, Keep: 9 * s.Identity.Cache})
}

// readAgain is how long a key file that was read is relied on: a tenth of
// identity.cache. The rest is how long a principal is held, so that together they
// take no longer than was promised.
func readAgain(s *config.Settings) time.Duration { return s.Identity.Cache / 10 }

// endpointKeys is the Identifier for keys that only a policy endpoint can judge.
type endpointKeys struct{}

// Resolve knows nobody, which is no failure.
func (endpointKeys) Resolve(context.Context, string) (*sessionstate.Principal, error) {
	return nil, nil
}

// Identifies reports whether the settings can say who a session acts for.
func (c *Authenticator) Identifies() bool {
	return c.Own.Text != nil || len(c.Accept) > 0 || c.operator.Variables != nil || c.operator.SessionFile != ""
}

// Identify returns who a session with this credential, or without one, acts for. With an error
// it returns what the operator says.
func (c *Authenticator) Identify(ctx context.Context, came capture.Credential) (*sessionstate.Principal, error) {
	operator, err := c.Asserted()
	if err != nil {
		return operator, err
	}
	text, from, err := c.credential(came)
	if err != nil || text == "" {
		return operator, err
	}
	p, err := from.Resolve(ctx, text)
	if err != nil {
		return operator, err
	}
	p, err = sessionstate.Overlay(operator, p)
	if err != nil {
		err = fmt.Errorf("%w: correct %s, %s or the session file, or give the credential of whom they name", err, config.UserVariable, config.TenantVariable)
	}
	return p, err
}

// Asserted returns who the operator says the session acts for. The session file is
// read afresh, so that a role taken out of it is gone.
func (c *Authenticator) Asserted() (*sessionstate.Principal, error) {
	if c.operator.SessionFile == "" {
		return c.operator.Variables, nil
	}
	return c.operator.With(identity.ReadSessionFile(c.operator.SessionFile))
}

// credential returns the credential that counts, and what knows whose it is.
func (c *Authenticator) credential(came capture.Credential) (text string, from identity.Identifier, err error) {
	isToken := identity.LooksLikeToken(came.Text)
	switch {
	case came.Text == "":
		if c.Own.Text != nil {
			text, err = c.Own.Text()
		}
		return text, identity.Chain(c.keys, c.tokens), err
	case came.Key == capture.CredentialKey && isToken:
		return "", nil, fmt.Errorf("%w: it came where an API key belongs: send it under _meta[%q]", identity.ErrToken, capture.TokenKey)
	case came.Key == capture.TokenKey && !isToken:
		return "", nil, fmt.Errorf("%w: what came under _meta[%q] is none: send a JWT there, or an API key under _meta[%q]", identity.ErrToken, capture.TokenKey, capture.CredentialKey)
	}
	return came.Text, identity.Chain(c.keys, c.tokens), nil
}

// passing reports whether a failure may end by itself: an issuer comes back, a file is renewed.
func passing(err error) bool {
	return slices.ContainsFunc([]error{
		identity.ErrKeyStore, identity.ErrKeySet, identity.ErrTokenKey, identity.ErrTokenExpired, identity.ErrTokenNotYetValid,
		identity.ErrTokenFile, identity.ErrSessionFile, context.DeadlineExceeded,
	}, func(kind error) bool { return errors.Is(err, kind) })
}

// unanswered reports whether a failure says nothing of the credential: the database with the keys
// did not answer, or not in time.
func unanswered(err error) bool {
	return errors.Is(err, identity.ErrKeyStore) || errors.Is(err, context.DeadlineExceeded)
}

// policyKey returns the function that gives a policy endpoint the API key of a session. It never
// gives a token: the token was issued for attache, and whoever has it could act as its owner
// here.
func (c *Authenticator) policyKey(sessions *capture.Conn) func(session string) string {
	return func(session string) string {
		if c.Own.Text == nil {
			return onlyKey(sessions.Credential(session).Text)
		}
		own, _ := c.Own.Text() // an error is logged where it is looked up
		return onlyKey(own)
	}
}

// onlyKey returns a credential unless it is a token.
func onlyKey(credential string) string {
	if identity.LooksLikeToken(credential) {
		return ""
	}
	return credential
}

// configure sets what the capture layer has to know.
func (c *Authenticator) configure(o *capture.Options, s *config.Settings, log *slog.Logger) {
	if c.Own.unused != (setting.Origin{}) {
		log.Warn("two credentials are given; the API key counts, the token does not: give one of the two", "unused", c.Own.unused.String())
	}
	if err := s.Operator.FileErr; err != nil {
		log.Warn("the session file cannot be used, so its user, workspace, session and trust are not known", "err", err)
	}
	o.Accept, o.Recheck, o.Passing, o.Unanswered = c.Accept, s.Identity.Cache-readAgain(s), passing, unanswered
}

// secretVariables returns the variables with our credentials, which no server gets.
func secretVariables(s *config.Settings) []string {
	names := []string{config.APIKeyVariable, config.TokenVariable}
	if s.Identity.AcceptsTokens() {
		names = append(names, config.JWTVariable)
	}
	return names
}

// WarnWorkspace logs that the operator's workspace does not exist. attache uses it anyway: it
// may be on the server's machine, or be created later.
func WarnWorkspace(s *config.Settings, log *slog.Logger) {
	path := s.Session.Workspace
	if path == "" || strings.Contains(path, "://") {
		return
	}
	from := s.Origin("session.workspace").String()
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		log.Warn("the workspace does not exist; attache uses it anyway", "workspace", path, "from", from)
	case err == nil && !info.IsDir():
		log.Warn("the workspace is not a directory; attache uses it anyway", "workspace", path, "from", from)
	}
}
