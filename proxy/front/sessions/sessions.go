// Package sessions stores the sessions of a front in the revisions up to 2025-11-25, so that
// they can continue in another process: after a restart of the front, or in another front.
// Many clients go on using the id of a session that no longer exists.
package sessions

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/attache-mcp/attache/proxy/internal/revive"
)

// NewID returns an id that nobody can guess.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand, Go 1.24
	return hex.EncodeToString(b[:])
}

// maxRoute is the length of the longest route.
const maxRoute = 64

// Route returns the prefix of the id of a new session, for a balancer that sent its request
// with a route. It returns "" if the route is not valid.
func Route(route string) string {
	if route == "" || len(route) > maxRoute || strings.Trim(route, "0123456789abcdefABCDEF-") != "" {
		return ""
	}
	return route + "."
}

// A Key names a session.
type Key struct {
	ID        string // SHA-256 of the id, in hex
	Principal string // the ID of the principal that opened it; others do not find it
}

// NewKey returns the key of a session.
func NewKey(id, principal string) Key {
	sum := sha256.Sum256([]byte(id))
	return Key{ID: hex.EncodeToString(sum[:]), Principal: principal}
}

// A Session is the state of a session that another server needs to continue it. Its fields are texts in
// JSON: Initialize (the params of initialize), Version and Capabilities (those of the server), Level
// (the params of the last logging/setLevel, "" for none) and the list Subscriptions (the params of the
// active resources/subscribe requests).
type Session = revive.State

var (
	// ErrNone is returned for a session that is not stored: it has ended, belongs to another
	// principal, or never existed. The client should begin a new one.
	ErrNone = errors.New("there is no such session")
	// ErrElsewhere is returned for a session that belongs to another running front.
	ErrElsewhere = errors.New("another front has the session")
)

// A Store stores sessions. Several fronts share the stored sessions, and each front has its
// own Store. A session belongs to the front that saved or took it, until that front stops or
// leaves it. Any error except ErrNone and ErrElsewhere means that the Store could not answer.
// The methods are called from many goroutines.
type Store interface {
	// Save stores a session of this front, and replaces its last state.
	Save(ctx context.Context, k Key, s Session) error
	// Take returns a session, which belongs to this front from then on. It returns ErrNone
	// or ErrElsewhere if this front cannot have it.
	Take(ctx context.Context, k Key) (Session, error)
	// Leave gives up a session of this front. A session that has ended is deleted; otherwise
	// any front may take it. Leave does not change a session that belongs to another front.
	Leave(ctx context.Context, k Key, ended bool) error
	// Elsewhere returns the address of the front that has the session, or else of a front
	// that may take it; "" if no other front is running.
	Elsewhere(ctx context.Context, k Key) (front string, err error)
}
