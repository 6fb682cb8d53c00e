package identity

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// DefaultCache is how long a key file that was read is relied on.
const DefaultCache = time.Minute

// Options are the options of [New].
type Options struct {
	// File is the path of the key file.
	File string
	// Cache is how long a file that was read is relied on, and so the time within
	// which a revoked key stops to work; 0 means [DefaultCache].
	Cache time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Resolver says whose a key is. It is safe for use by several goroutines, and
// keeps no key but as its hash.
type Resolver struct {
	file  string
	cache time.Duration
	now   func() time.Time

	mu     sync.Mutex // guards what follows
	keys   []key
	info   fs.FileInfo // of the file when it was read; nil before that
	readAt time.Time
}

// key is an entry made ready for Resolve.
type key struct {
	sum       [sha256.Size]byte
	entry     Entry
	principal *sessionstate.Principal
}

// New returns a Resolver for o.File. The file is first read when a key is.
func New(o Options) *Resolver {
	if o.Cache <= 0 {
		o.Cache = DefaultCache
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Resolver{file: o.File, cache: o.Cache, now: o.Now}
}

// Resolve returns whose key the credential is. The errors are [ErrUnknownKey],
// [ErrExpired], [ErrRevoked] and [ErrFile], each with a reason, and ctx's own; none
// contains the credential. A file that can no longer be read identifies nobody,
// also not those it identified before, once the cache time is over.
//
// A key that is not among those read is looked for in the file at once if the file
// has changed, so a new key works without waiting.
func (r *Resolver) Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(credential)))
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	fresh := r.info != nil && now.Sub(r.readAt) < r.cache
	found := r.findLocked(sum)
	if !fresh || found == nil && r.changedLocked() {
		if err := r.readLocked(now); err != nil {
			return nil, err
		}
		found = r.findLocked(sum)
	}
	if found == nil {
		return nil, fmt.Errorf("%w: it is not in %s: make one with attache key create", ErrUnknownKey, r.file)
	}
	if err := found.entry.check(now); err != nil {
		return nil, err
	}
	return found.principal, nil
}

// findLocked returns the key with that hash, nil if there is none. It compares
// with all of them, each in constant time, so how long it takes tells nothing.
func (r *Resolver) findLocked(sum [sha256.Size]byte) *key {
	var found *key
	for i := range r.keys {
		if subtle.ConstantTimeCompare(r.keys[i].sum[:], sum[:]) == 1 {
			found = &r.keys[i]
		}
	}
	return found
}

// changedLocked reports whether the file is another than the one that was read.
// A file that cannot be looked at is: reading it will say why.
func (r *Resolver) changedLocked() bool {
	info, err := os.Stat(r.file)
	return err != nil || !os.SameFile(info, r.info) || info.Size() != r.info.Size() || !info.ModTime().Equal(r.info.ModTime())
}

// readLocked reads the file. After an error nothing of an earlier reading is left.
func (r *Resolver) readLocked(now time.Time) error {
	r.keys, r.info = nil, nil
	// Looked at before it is read: a change in between is then seen as one.
	info, err := os.Stat(r.file)
	if err != nil {
		return fileError(r.file, err)
	}
	entries, err := List(r.file)
	if err != nil {
		return err
	}
	for _, e := range entries {
		k := key{entry: e, principal: e.principal()}
		_, _ = hex.Decode(k.sum[:], []byte(e.SHA256)) // it was checked when it was read
		r.keys = append(r.keys, k)
	}
	r.info, r.readAt = info, now
	return nil
}
