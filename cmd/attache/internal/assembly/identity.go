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
	"sync"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// An Authenticator identifies the principals of sessions. It combines the facts that the operator
// sets with the owner of the session's credential. That is the operator's credential or, if there
// is none and the settings allow it, the client's. If a credential is refused, no other is tried. It is safe for
// concurrent use.
type Authenticator struct {
	operator config.OperatorSettings // the principal that variables or the session file set
	Own      Credential
	keys     identity.Identifier // nil if there are no keys
	tokens   identity.Identifier // nil if no issuer is configured
	Accept   []string            // the members of _meta in which credentials are accepted

	// The result of reading the session file, kept for cache: a front needs it for each message. reading
	// guards the fields below it, and is held during a read, so that several messages wait for one read.
	cache    time.Duration
	reading  sync.Mutex
	readAt   time.Time
	asserted *sessionstate.Principal
	err      error
}

// A Credential is the operator's credential for the sessions.
type Credential struct {
	Text func() (string, error) // nil if there is none
	From setting.Origin
	// secret is the credential, if it cannot change.
	secret string
	// unused is the origin of another credential, which is ignored.
	unused setting.Origin
}

// NewAuthenticator returns the Authenticator for s. If the keys are in a database, it opens the
// database. An error is a mistake in the settings.
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

// newAuthenticator is like NewAuthenticator, for a process that keeps running. The process has opened the database
// itself, and the caller may replace keys and tokens by those in use. db holds the keys; if it is nil, the key file
// does. keptKeys and keptTokens are called when the key file, or the key set for tokens, cannot be read again and
// the keys read before stay valid; see [identity.Options] and [identity.TokenOptions].
func newAuthenticator(p cli.Process, s *config.Settings, db *keyDatabase, keptKeys, keptTokens func(error)) (*Authenticator, error) {
	own, err := OperatorCredential(p, s)
	if err != nil {
		return nil, err
	}
	a := &Authenticator{operator: s.Operator, Own: own, keys: acceptedKeys(s, db, keptKeys), cache: keyCache(s)}
	if s.Identity.AcceptsTokens() {
		o := s.Identity.Tokens()
		o.Kept = keptTokens
		if a.tokens, err = identity.NewTokens(o); err != nil {
			return nil, err
		}
	}
	// If the operator has set a credential, clients may send none in _meta: the operator has decided who the
	// client is.
	if own.Text != nil {
		return a, nil
	}
	if s.Identity.MetaAPIKey {
		a.Accept = append(a.Accept, capture.CredentialKey)
	}
	if s.Identity.MetaToken {
		a.Accept = append(a.Accept, capture.TokenKey)
	}
	return a, nil
}

// OperatorCredential returns the operator's credential: the API key or, if there is none, the
// token. It does not check whether the credential is valid: Identify does, when a message needs the principal.
func OperatorCredential(p cli.Process, s *config.Settings) (Credential, error) {
	key, from, err := config.APIKey(p, s)
	if err != nil {
		return Credential{}, err
	}
	token := ownToken(p, s)
	if key == "" {
		return token, nil
	}
	own := constant(key.Reveal(), from)
	if token.Text != nil {
		own.unused = token.From
	}
	return own, nil
}

// constant returns a Credential that cannot change.
func constant(credential string, from setting.Origin) Credential {
	return Credential{Text: func() (string, error) { return credential, nil }, From: from, secret: credential}
}

// ownToken returns the operator's token. The flag --token-file takes precedence over the variables
// that hold a token, and these over ATTACHE_TOKEN_FILE and the configuration file. MCP_JWT is used
// only if tokens are accepted, because it may be meant for the server.
func ownToken(p cli.Process, s *config.Settings) Credential {
	file := s.Origin("identity.token_file")
	if file.Name != "--token-file" {
		if token := strings.TrimSpace(p.Getenv(config.TokenVariable)); token != "" {
			return constant(token, setting.Origin{Name: config.TokenVariable})
		}
		if token := strings.TrimSpace(p.Getenv(config.JWTVariable)); token != "" && s.Identity.AcceptsTokens() {
			return constant(token, setting.Origin{Name: config.JWTVariable})
		}
	}
	if s.Identity.TokenFile == "" {
		return Credential{}
	}
	return Credential{Text: identity.TokenFile(s.Identity.TokenFile), From: file}
}

// acceptedKeys returns the Identifier for API keys, nil if there is none. With a missing key file,
// each key is an error, unless the policy endpoint may know the key.
func acceptedKeys(s *config.Settings, db *keyDatabase, kept func(error)) identity.Identifier {
	if db != nil {
		return newSharedKeys(db, s)
	}
	if s.Policy.URL != "" && s.IsDefaultKeysFile() {
		if _, err := os.Stat(s.Identity.KeysFile); cli.IsMissing(err) {
			return endpointKeys{}
		}
	}
	if s.Identity.KeysFile == "" {
		return nil
	}
	// A principal is cached for nearly identity.cache in addition, so in all it is ten times that.
	return identity.New(identity.Options{File: s.Identity.KeysFile, Cache: keyCache(s), Kept: kept, Keep: 9 * s.Identity.Cache})
}

// endpointKeys is the Identifier for keys that only a policy endpoint can verify. To attache their owner
// is unknown but not refused: the session has no principal, and its key goes to the endpoint.
type endpointKeys struct{}

// Resolve returns no principal and no error.
func (endpointKeys) Resolve(context.Context, string) (*sessionstate.Principal, error) {
	return nil, nil
}

// identifies reports whether the settings can identify the principal of a session.
func (a *Authenticator) identifies() bool {
	return a.Own.Text != nil || len(a.Accept) > 0 || a.operator.Variables != nil || a.operator.SessionFile != ""
}

// Identify returns the principal of a session in which the client sent this credential, which may
// be empty. With an error it also returns the principal that the operator sets. Everything that depends on the
// principal is refused all the same (sessionstate.Context.Unidentified).
func (a *Authenticator) Identify(ctx context.Context, inMeta capture.Credential) (*sessionstate.Principal, error) {
	// Read the session file first: a file that cannot be read may have named another user than the credential
	// does.
	operator, err := a.Asserted()
	if err != nil {
		return operator, err
	}
	text, err := a.credential(inMeta)
	if err != nil || text == "" {
		return operator, err
	}
	p, err := identity.Chain(a.keys, a.tokens).Resolve(ctx, text)
	if err != nil {
		return operator, err
	}
	p, err = sessionstate.Overlay(operator, p)
	if err != nil {
		err = fmt.Errorf("%w: correct %s, %s or the session file, or give the credential of whom they name", err, config.UserVariable, config.TenantVariable)
	}
	return p, err
}

// Asserted returns the principal that the operator sets. It reads the session file again after a
// tenth of identity.cache, so that a role removed from the file soon has no effect any more.
func (a *Authenticator) Asserted() (*sessionstate.Principal, error) {
	if a.operator.SessionFile == "" {
		return a.operator.Variables, nil
	}
	a.reading.Lock()
	defer a.reading.Unlock()
	if now := time.Now(); a.readAt.IsZero() || now.Sub(a.readAt) >= a.cache {
		a.asserted, a.err = a.operator.With(identity.ReadSessionFile(a.operator.SessionFile))
		a.readAt = now
	}
	return a.asserted, a.err
}

// refresh makes Asserted read the session file again. The next message reads it, so an error has the usual effect.
func (a *Authenticator) refresh() {
	a.reading.Lock()
	defer a.reading.Unlock()
	a.readAt = time.Time{}
}

// overlay returns the owner of a credential with what the operator sets. With an error it returns the
// principal that the operator sets. It does not verify the credential again: the front has verified it for this
// request.
func (a *Authenticator) overlay(owner *sessionstate.Principal) (*sessionstate.Principal, error) {
	operator, err := a.Asserted()
	if err != nil {
		return operator, err
	}
	return sessionstate.Overlay(operator, owner)
}

// credential returns the credential in _meta or, if there is none, the operator's. It refuses a key in the member for
// tokens, and a token in the member for keys: the settings may allow only one of the two.
func (a *Authenticator) credential(inMeta capture.Credential) (string, error) {
	isToken := identity.LooksLikeToken(inMeta.Text)
	switch {
	case inMeta.Text != "" && inMeta.Key == capture.CredentialKey && isToken:
		return "", fmt.Errorf("%w: it came where an API key belongs: send it under _meta[%q]", identity.ErrToken, capture.TokenKey)
	case inMeta.Text != "" && inMeta.Key == capture.TokenKey && !isToken:
		return "", fmt.Errorf("%w: the text under _meta[%q] is no token: send a JWT there, or an API key under _meta[%q]", identity.ErrToken, capture.TokenKey, capture.CredentialKey)
	case inMeta.Text == "" && a.Own.Text != nil:
		return a.Own.Text()
	}
	return inMeta.Text, nil
}

// temporary reports whether a failure may end by itself: an issuer becomes reachable, or a file is
// renewed. The capture layer then looks the credential up again after ten seconds, and not only after
// capture.Options.Recheck.
func temporary(err error) bool {
	return slices.ContainsFunc([]error{
		identity.ErrKeyStore, identity.ErrKeySet, identity.ErrTokenKey, identity.ErrTokenExpired, identity.ErrTokenNotYetValid,
		identity.ErrTokenFile, identity.ErrSessionFile, context.DeadlineExceeded,
	}, func(kind error) bool { return errors.Is(err, kind) })
}

// unanswered reports whether the credential could not be checked, because the database with the keys
// did not answer in time. A principal that was found before then stays valid until Recheck is over;
// after other errors it is dropped.
func unanswered(err error) bool {
	return errors.Is(err, identity.ErrKeyStore) || errors.Is(err, context.DeadlineExceeded)
}

// keyOrNone returns credential if it is an API key, and "" if it is a token. A token must not reach a policy
// endpoint: see Conn.policyKey.
func keyOrNone(credential string) string {
	if identity.LooksLikeToken(credential) {
		return ""
	}
	return credential
}

// configure sets the options of the capture layer about credentials. It is called once for a process, because a
// reload does not change these options. Its warnings are about the settings at the start.
func (a *Authenticator) configure(o *capture.Options, s *config.Settings, log *slog.Logger) {
	if a.Own.unused != (setting.Origin{}) {
		log.Warn("two credentials are given; the API key counts, the token does not: give one of the two", "unused", a.Own.unused.String())
	}
	if err := s.Operator.FileErr; err != nil {
		log.Warn("the session file cannot be used, so its user, workspace, session and trust are not known", "err", err)
	}
	// Recheck and the cache of the key file add up to identity.cache: see keyCache.
	o.Accept, o.Recheck, o.Passing, o.Unanswered = a.Accept, s.Identity.Cache-keyCache(s), temporary, unanswered
}

// WarnWorkspace logs a warning if the operator's workspace does not exist. attache uses it anyway,
// because it may be on the server's machine, or be created later.
func WarnWorkspace(s *config.Settings, log *slog.Logger) {
	path := s.Session.Workspace
	// A URL is no file of this machine.
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
