// Package identity returns the principal of a credential, or of a file that the host wrote.
//
//   - API keys: [Create], [List], [Revoke] and [Resolver], described below.
//   - Tokens (JWT) of an issuer whose public keys are known: [Tokens].
//   - [Chain] passes a credential to one or the other by its form.
//   - [TokenFile] reads a credential from a file that is renewed from time to time.
//   - [ReadSessionFile] reads the principal that the host names for a session.
//
// The key file stores the hashes of API keys, never the keys. [Create], [List] and [Revoke]
// write and read it for people; a [Resolver] returns the owner of a key during a session:
//
//	key, entry, err := identity.Create("keys.yaml", identity.Attributes{User: "ada", Tenant: "acme"}, "", 0, time.Now())
//	// key is shown once: atk_x7k2m4qa_...
//
//	resolver := identity.New(identity.Options{File: "keys.yaml"})
//	principal, err := resolver.Resolve(ctx, key)
//
// The file is YAML, read strictly, and must be readable by its owner alone:
//
//	keys:
//	  - id: x7k2m4qa
//	    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	    user: ada
//	    tenant: acme
//	    roles: [developer]
//	    permissions: [records:read, records:write]
//	    created: 2026-07-28T09:00:00Z
//	    expires: 2027-07-28T09:00:00Z
//
// An entry may also have email, plan, scope, trust and revoked. A time is written as above or
// as a day, which means its beginning in UTC.
//
// The package grants nothing. It returns the owner of a credential with the attributes that the
// operator or the issuer gave them. An unknown credential is an error, and the caller decides
// what follows. No error contains a credential, and of credentials only the content of a token
// file stays in memory. golang-jwt checks the signatures; there is no cryptography here.
package identity

import (
	"errors"
	"fmt"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

var (
	// ErrUnknownKey means that the file has no such key. The session has no principal, and the
	// caller reports this once.
	ErrUnknownKey = errors.New("unknown API key")

	// ErrExpired means that the key is past its expiry. Its owner needs a new one.
	ErrExpired = errors.New("API key has expired")

	// ErrRevoked means that the key was revoked.
	ErrRevoked = errors.New("API key was revoked")

	// ErrFile means that the key file is missing, readable by others, or not a key file. No key
	// is accepted until a person repairs it; the text says how.
	ErrFile = errors.New("key file cannot be used")

	// ErrKeyStore means that the database with the keys does not answer. No key is accepted
	// until it does.
	ErrKeyStore = errors.New("API keys cannot be looked up")
)

// Attributes describe the owner of a key. All may be empty.
type Attributes struct {
	User, Tenant, Email string
	// Roles and Permissions are names that the operator chooses.
	Roles, Permissions []string
	Plan               string
	// Scope is the policy scope of sessions with this key.
	Scope string
	// Trust is "direct", "sandboxed" or empty for the configured level.
	Trust string
}

// An Entry is the entry of one key in the key file.
type Entry struct {
	// ID names the key. It is a part of the key, but not secret.
	ID string
	// SHA256 is the hash of the whole key in hexadecimal.
	SHA256 string
	Attributes
	// Created, Expires and Revoked are in UTC and in whole seconds; zero means unknown, never,
	// and not revoked.
	Created, Expires, Revoked time.Time
}

// Check returns the reason why the key is not valid at now, [ErrRevoked] or [ErrExpired], or nil.
func (e Entry) Check(now time.Time) error {
	switch {
	case !e.Revoked.IsZero():
		return fmt.Errorf("%w: %s: make a new one with attache key create", ErrRevoked, e.ID)
	case !e.Expires.IsZero() && !now.Before(e.Expires):
		return fmt.Errorf("%w: %s: make a new one with attache key create", ErrExpired, e.ID)
	}
	return nil
}

// Principal returns the owner of the key.
func (e Entry) Principal() *sessionstate.Principal {
	return &sessionstate.Principal{
		KeyID: e.ID, User: e.User, Tenant: e.Tenant, Email: e.Email,
		Roles: e.Roles, Permissions: e.Permissions,
		Plan: e.Plan, Scope: e.Scope, Trust: sessionstate.NormalizeTrust(e.Trust),
	}
}
