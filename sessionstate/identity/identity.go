// Package identity turns a credential, or a file that the host wrote, into the
// principal it stands for.
//
//   - API keys: [Create], [List], [Revoke] and [Resolver], described below.
//   - Tokens (JWT) of an issuer whose public keys are known: [Tokens].
//   - [Chain] takes a credential for the one or the other by its form.
//   - [TokenFile] is a credential in a file that is renewed from time to time.
//   - [ReadSessionFile] reads who the host says the session acts for.
//
// API keys are kept in a file that holds their hashes, never the keys. [Create],
// [List] and [Revoke] write and read that file for people; a [Resolver] answers,
// on the path of a session, who a key belongs to:
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
// Besides those an entry may have email, plan, scope, trust and revoked. Times are
// written as above or as a day, which means its beginning in UTC.
//
// What the package does not do: it grants nothing. It says who a credential belongs
// to and what the operator or the issuer says about them; one it does not know is
// an error, and what follows from that is the caller's decision. No error contains
// a credential, and none is kept in memory but the text of a token file. Signatures
// are checked by golang-jwt; there is no cryptography here.
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

	// ErrFile means that the key file is missing, readable by others, or not a key file.
	// Nobody can be identified until a person mends it; the text says how.
	ErrFile = errors.New("key file cannot be used")

	// ErrKeyStore means that the database with the keys does not say whose a key is. Nobody can
	// be identified until it answers.
	ErrKeyStore = errors.New("API keys cannot be looked up")
)

// Attributes are what the operator writes down about the owner of a key. All may
// be empty.
type Attributes struct {
	User, Tenant, Email string
	// Roles and Permissions are words of the operator's own choosing.
	Roles, Permissions []string
	Plan               string
	// Scope is the policy scope of sessions with this key.
	Scope string
	// Trust is "direct", "sandboxed" or empty for the configured level.
	Trust string
}

// An Entry is what the file says of one key.
type Entry struct {
	// ID names the key; it is part of it and no secret.
	ID string
	// SHA256 is the hash of the whole key in hexadecimal.
	SHA256 string
	Attributes
	// Created, Expires and Revoked are in UTC and in whole seconds; zero means not
	// known, never, and not revoked.
	Created, Expires, Revoked time.Time
}

// Check returns why e does not hold at now: [ErrRevoked], [ErrExpired] or nil.
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
