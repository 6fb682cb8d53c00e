// Package sessions has what a front keeps of its sessions in the revisions to 2025-11-25, so
// that they go on in another process: in one that was started in its place, or in another
// front. Many clients go on using the id of a session that is gone.
package sessions

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// NewID returns an id that nobody can guess.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand, Go 1.24
	return hex.EncodeToString(b[:])
}

// A Key names a session.
type Key struct {
	ID        string // SHA-256 of the id, in hex
	Principal string // the ID of the principal that opened it; nobody else finds it
}

// NewKey returns the key of a session.
func NewKey(id, principal string) Key {
	sum := sha256.Sum256([]byte(id))
	return Key{ID: hex.EncodeToString(sum[:]), Principal: principal}
}

// A Session is what a client and its server have agreed on, and what else another server has
// to be told in its place. Its texts are JSON.
type Session struct {
	Initialize    string   // the params of initialize
	Version       string   // that the server agreed to
	Capabilities  string   // of the server
	Level         string   // params of the last logging/setLevel; "" for none
	Subscriptions []string // params of the resources/subscribe in force
}

var (
	// ErrNone is returned for a session that is not kept: it has ended, is another
	// principal's, or never was. The client begins a new one.
	ErrNone = errors.New("there is no such session")
	// ErrElsewhere is returned for a session of another front that is alive.
	ErrElsewhere = errors.New("another front has the session")
)

// A Store keeps sessions. Several fronts share what it keeps, and each of them has a Store of
// its own. A session belongs to the front that saved or took it, as long as that front is
// alive and has not left it. Errors besides ErrNone and ErrElsewhere say that the Store could
// not answer. Its methods are called from many goroutines.
type Store interface {
	// Save keeps a session of this front, in place of what was kept of it.
	Save(ctx context.Context, k Key, s Session) error
	// Take returns a session, which belongs to this front from then on. The error is
	// ErrNone or ErrElsewhere if it does not.
	Take(ctx context.Context, k Key) (Session, error)
	// Leave says that this front has the session no longer. One that has ended is
	// forgotten; any other may be taken, by any front. Of a session that another front has
	// Leave changes nothing.
	Leave(ctx context.Context, k Key, ended bool) error
	// Elsewhere returns the address of the front that has the session, or else of one
	// that may take it; "" if no other front is alive.
	Elsewhere(ctx context.Context, k Key) (front string, err error)
}
