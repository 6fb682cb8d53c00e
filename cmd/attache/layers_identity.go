package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A caller says who the sessions of one run act for: what the operator says, and
// below it what the one credential of a session says, the operator's or, where he
// gives none and allows it, the client's. A credential that is refused is never
// replaced by another.
type caller struct {
	operator OperatorSettings
	own      ownCredential
	keys     identity.Identifier // nil if there is no key file
	tokens   identity.Identifier // nil if no issuer is configured
	accept   []string            // where in _meta a credential counts
}

// An ownCredential is the credential that the operator gives the sessions.
type ownCredential struct {
	text func() (string, error) // nil if there is none
	from Origin
	// secret is the credential where it cannot change.
	secret string
	// unused is another one that was given and does not count.
	unused Origin
}

// heldKeys are told why keys that were read before hold although what they were read
// from cannot be read again; see [identity.Options] and [identity.TokenOptions]. The
// zero value tells nobody.
type heldKeys struct {
	keys   func(error) // of the key file
	tokens func(error) // of the key set for tokens
}

// newCaller returns who says it for s. An error is a mistake in the settings.
func newCaller(p process, s *Settings, kept heldKeys) (*caller, error) {
	own, err := ownCredentialOf(p, s)
	if err != nil {
		return nil, err
	}
	c := &caller{operator: s.Operator, own: own, keys: acceptedKeys(s, kept.keys)}
	if s.Identity.JWT.configured() {
		o := s.Identity.JWT.tokens()
		o.Kept = kept.tokens
		if c.tokens, err = identity.NewTokens(o); err != nil {
			return nil, err
		}
	}
	if own.text != nil {
		return c, nil
	}
	if s.Identity.MetaAPIKey {
		c.accept = append(c.accept, capture.CredentialKey)
	}
	if s.Identity.MetaToken {
		c.accept = append(c.accept, capture.TokenKey)
	}
	return c, nil
}

// ownCredentialOf returns the operator's credential: the API key, or where there is
// none the token.
func ownCredentialOf(p process, s *Settings) (ownCredential, error) {
	key, from, err := apiKey(p, s)
	if err != nil {
		return ownCredential{}, err
	}
	token := ownToken(p, s)
	if key == "" {
		return token, nil
	}
	own := fixed(key.Reveal(), from)
	if token.text != nil {
		own.unused = token.from
	}
	return own, nil
}

func fixed(credential string, from Origin) ownCredential {
	return ownCredential{text: func() (string, error) { return credential, nil }, from: from, secret: credential}
}

// ownToken returns the operator's token. The flag --token-file stands above the
// variables that hold a token, and these above ATTACHE_TOKEN_FILE and the
// configuration file. MCP_JWT is not a name of ours: it may be meant for the
// server, unless tokens are accepted here.
func ownToken(p process, s *Settings) ownCredential {
	file := s.Origin("identity.token_file")
	if file.Name != "--token-file" {
		if given := strings.TrimSpace(p.getenv(tokenVariable)); given != "" {
			return fixed(given, Origin{Name: tokenVariable})
		}
		if given := strings.TrimSpace(p.getenv(jwtVariable)); given != "" && s.Identity.JWT.configured() {
			return fixed(given, Origin{Name: jwtVariable})
		}
	}
	if s.Identity.TokenFile == "" {
		return ownCredential{}
	}
	return ownCredential{text: identity.TokenFile(s.Identity.TokenFile), from: file}
}

// acceptedKeys returns what knows API keys, nil if nothing does. A file that is not
// there identifies nobody, and says so when a key comes, unless the key is one that
// the policy endpoint alone knows.
func acceptedKeys(s *Settings, kept func(error)) identity.Identifier {
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
func readAgain(s *Settings) time.Duration { return s.Identity.Cache / 10 }

// endpointKeys are the keys that a policy endpoint judges, and nobody here.
type endpointKeys struct{}

// Resolve knows nobody, which is no failure.
func (endpointKeys) Resolve(context.Context, string) (*sessionstate.Principal, error) {
	return nil, nil
}

// identifies reports whether there is anything to say at all.
func (c *caller) identifies() bool {
	return c.own.text != nil || len(c.accept) > 0 || c.operator.Variables != nil || c.operator.SessionFile != ""
}

// Identify says who a session acts for that came with a credential, or without
// one. With an error, what the operator says holds all the same.
func (c *caller) Identify(ctx context.Context, came capture.Credential) (*sessionstate.Principal, error) {
	operator, err := c.asserted()
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
		err = fmt.Errorf("%w: correct %s, %s or the session file, or give the credential of whom they name", err, userVariable, tenantVariable)
	}
	return p, err
}

// asserted returns who the operator says the session acts for. The session file is
// read afresh, so that a role taken out of it is gone.
func (c *caller) asserted() (*sessionstate.Principal, error) {
	if c.operator.SessionFile == "" {
		return c.operator.Variables, nil
	}
	return c.operator.with(identity.ReadSessionFile(c.operator.SessionFile))
}

// credential returns the credential that counts, and what knows whose it is.
func (c *caller) credential(came capture.Credential) (text string, from identity.Identifier, err error) {
	isToken := identity.LooksLikeToken(came.Text)
	switch {
	case came.Text == "":
		if c.own.text != nil {
			text, err = c.own.text()
		}
		return text, identity.Chain(c.keys, c.tokens), err
	case came.Key == capture.CredentialKey && isToken:
		return "", nil, fmt.Errorf("%w: it came where an API key belongs: send it under _meta[%q]", identity.ErrToken, capture.TokenKey)
	case came.Key == capture.TokenKey && !isToken:
		return "", nil, fmt.Errorf("%w: what came under _meta[%q] is none: send a JWT there, or an API key under _meta[%q]", identity.ErrToken, capture.TokenKey, capture.CredentialKey)
	}
	return came.Text, identity.Chain(c.keys, c.tokens), nil
}

// passing reports whether a failure may pass without anybody doing something here:
// an issuer comes back, a file is renewed.
func passing(err error) bool {
	for _, kind := range []error{
		identity.ErrKeySet, identity.ErrTokenKey, identity.ErrTokenExpired, identity.ErrTokenNotYetValid,
		identity.ErrTokenFile, identity.ErrSessionFile, context.DeadlineExceeded,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// policyKey returns what gives the API key of a session to a policy endpoint. A
// token goes to nobody: it was issued for us, and who gets it could be its owner
// here.
func (c *caller) policyKey(sessions *capture.Conn) func(session string) string {
	return func(session string) string {
		if c.own.text == nil {
			return onlyKey(sessions.Credential(session).Text)
		}
		own, _ := c.own.text() // why not is told where it is looked up
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
func (c *caller) configure(o *capture.Options, s *Settings, log *slog.Logger) {
	if c.own.unused != (Origin{}) {
		log.Warn("two credentials are given; the API key counts, the token does not: give one of the two", "unused", c.own.unused.String())
	}
	if err := s.Operator.FileErr; err != nil {
		log.Warn("nothing of the session file holds, nor the workspace, session and trust it may name", "err", err)
	}
	o.Accept, o.Recheck, o.Passing = c.accept, s.Identity.Cache-readAgain(s), passing
}

// secretVariables returns the variables with our credentials, which no server gets.
func secretVariables(s *Settings) []string {
	names := []string{keyVariable, tokenVariable}
	if s.Identity.JWT.configured() {
		names = append(names, jwtVariable)
	}
	return names
}

// warnOfWorkspace tells of a workspace of the operator's that is not there. It is
// used all the same: it may be on the server's machine, or be made yet.
func warnOfWorkspace(s *Settings, log *slog.Logger) {
	path := s.Session.Workspace
	if path == "" || strings.Contains(path, "://") {
		return
	}
	from := s.Origin("session.workspace").String()
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		log.Warn("there is no such workspace; it is used all the same", "workspace", path, "from", from)
	case err == nil && !info.IsDir():
		log.Warn("the workspace is no directory; it is used all the same", "workspace", path, "from", from)
	}
}
