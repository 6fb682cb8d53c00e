package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy/front"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// acceptResource changes settings so that tokens for the URL of the endpoint are accepted. Clients ask the
// issuer for a token for that URL (RFC 8707), and it differs for each of several servers.
func (e *endpoint) acceptResource(s *config.Settings) {
	if e.s.settings.PublicURL != "" {
		s.Identity.JWT.Resource = e.s.resource(e)
	}
}

// warnOfCredentials logs mistakes in the settings for credentials at the start, before a client
// connects.
func (e *endpoint) warnOfCredentials() {
	if len(e.s.settings.LoginScopes) > 0 && e.s.metadata(e) == nil {
		e.log.Warn("serve.login_scopes has no effect without serve.public_url and identity.jwt.issuer", "path", e.Path)
	}
	if !e.shared.Authenticates() {
		if len(e.s.settings.Scopes) > 0 {
			e.log.Warn("serve.scopes has no effect, because clients need no credential: make keys with attache key create, or set identity.jwt")
		}
		if e.s.settings.PublicURL != "" {
			e.log.Warn("serve.public_url is set, but clients need no credential: make keys with attache key create, or set identity.jwt", "path", e.Path)
		}
		return
	}
	if err := e.checkKeys(); err != nil {
		e.log.Warn("keys cannot be checked: clients get an error until attache can check them", "path", e.Path, "err", err)
	}
}

// checkKeys returns an error if the key file cannot be used, so that no key can be checked.
func (e *endpoint) checkKeys() error {
	if !e.shared.Authenticates() || e.s.database != nil { // with a database the keys are in it
		return nil
	}
	// No key is "none". Only an error of the file counts.
	if _, err := e.authenticate(context.Background(), "none"); errors.Is(err, identity.ErrFile) {
		return err
	}
	return nil
}

// authenticate returns the principal of a credential. The class of its error decides about the answer: 503
// if the credential could not be checked (ErrUnavailable), 403 if it lacks a scope (ErrScope), else 401.
// ErrEnded also ends the session if it has an open stream.
func (e *endpoint) authenticate(ctx context.Context, credential string) (front.Principal, error) {
	p, err := e.shared.Authenticate(ctx, credential)
	switch {
	case e.hasOnlyTokens(err):
		return front.Principal{}, identity.ErrUnknownKey
	// Also if the client has left meanwhile: then nothing is known of its credential.
	case errors.Is(err, identity.ErrFile), errors.Is(err, identity.ErrKeyStore), errors.Is(err, identity.ErrKeySet), err != nil && ctx.Err() != nil:
		return front.Principal{}, fmt.Errorf("%w: %w", front.ErrUnavailable, err)
	case errors.Is(err, identity.ErrRevoked), errors.Is(err, identity.ErrExpired): // a token can be renewed, a key cannot
		return front.Principal{}, fmt.Errorf("%w: %w", front.ErrEnded, err)
	case err != nil:
		return front.Principal{}, err
	case p == nil:
		return front.Principal{}, identity.ErrUnknownKey
	}
	// A key has permissions. The scopes of a token are those that the issuer has granted (RFC 9068).
	for _, scope := range e.s.settings.Scopes {
		if !slices.Contains(p.Permissions, scope) && !slices.Contains(p.TokenScopes, scope) {
			return front.Principal{}, fmt.Errorf("%w: user %q lacks %s", front.ErrScope, p.User, scope)
		}
	}
	return front.Principal{ID: principalID(p, credential), Value: p}, nil
}

// authenticateUnsure returns authenticate for a front that started while its database did not answer. If the
// database has no keys, as its first answer says, clients need no credential from then on, unless a reload
// has named an issuer meanwhile.
func (e *endpoint) authenticateUnsure() func(*http.Request) (front.Principal, error) {
	var open atomic.Bool
	return func(r *http.Request) (front.Principal, error) {
		if open.Load() {
			return front.Principal{}, nil
		}
		needs, unsure := e.shared.Current().NeedsCredential()
		scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		switch {
		case !needs:
			open.Store(true)
			return front.Principal{}, nil
		case unsure:
			return front.Principal{}, fmt.Errorf("%w: it is not known whether the shared database has keys", front.ErrUnavailable)
		case !strings.EqualFold(scheme, "Bearer"):
			return front.Principal{}, front.ErrNoCredential
		}
		return e.authenticate(r.Context(), strings.TrimSpace(credential))
	}
}

// hasOnlyTokens reports whether err means that the default key file does not exist, and clients use
// tokens instead of keys. A client with an unknown credential then gets 401, from which it learns where
// to log in, and not 503.
func (e *endpoint) hasOnlyTokens(err error) bool {
	if !errors.Is(err, identity.ErrFile) || !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	s := e.shared.Current().Settings() // a reload may name a key file
	return s.Identity.AcceptsTokens() && s.IsDefaultKeysFile()
}

// principalID returns the id that a session is bound to. A token may be renewed during a session, so
// its id is that of its user. A token without a user has an id of its own.
func principalID(p *sessionstate.Principal, credential string) string {
	switch {
	case !identity.LooksLikeToken(credential):
		return "key " + p.KeyID
	case p.User != "":
		return "user " + strconv.Quote(p.Tenant) + " " + strconv.Quote(p.User)
	}
	sum := sha256.Sum256([]byte(credential))
	return "token " + hex.EncodeToString(sum[:])
}
