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
	// Kept, if not nil, is called when the file has changed and can no longer be parsed, with
	// the reason, once for each reason. The keys that were read before stay valid until the
	// file can be parsed again, at most for Keep. Without Kept, nobody is identified
	// meanwhile. A file that is missing or open to others identifies nobody in any case.
	Kept func(error)
	// Keep bounds how long a revoked key stays valid while the file cannot be parsed; 0 means
	// ten times Cache.
	Keep time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Resolver finds the owner of a key. It is safe for use by several goroutines, and keeps
// only hashes of keys.
type Resolver struct {
	file  string
	cache time.Duration
	kept  func(error)
	keep  time.Duration
	now   func() time.Time

	mu       sync.Mutex // guards what follows
	keys     []key
	info     fs.FileInfo // of the file when it was read; nil before that
	readAt   time.Time
	told     string    // why the file of now is not the one in force
	brokenAt time.Time // when that was first found
}

// key is an entry made ready for Resolve.
type key struct {
	sum       [sha256.Size]byte
	entry     Entry
	principal *sessionstate.Principal
}

// New returns a Resolver for o.File. The first Resolve reads the file.
func New(o Options) *Resolver {
	if o.Cache <= 0 {
		o.Cache = DefaultCache
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Keep <= 0 {
		o.Keep = 10 * o.Cache
	}
	return &Resolver{file: o.File, cache: o.Cache, kept: o.Kept, keep: o.Keep, now: o.Now}
}

// Resolve returns the owner of the key. The errors are [ErrUnknownKey], [ErrExpired],
// [ErrRevoked] and [ErrFile], each with a reason, and ctx's own; none contains the credential.
// A file that can no longer be read identifies nobody once the cache time is over, not even
// the owners that it identified before.
//
// If a key is not among those that were read and the file has changed, the file is read again
// immediately, so a new key works without delay.
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
	if err := found.entry.Check(now); err != nil {
		return nil, err
	}
	return found.principal, nil
}

// Refresh reads the file now, for a caller who knows that it has changed. The error is that of
// [Resolver.Resolve].
func (r *Resolver) Refresh() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readLocked(r.now())
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
	before := r.info
	r.info = nil
	// Looked at before it is read: a change in between is then seen as one.
	info, err := os.Stat(r.file)
	if err != nil {
		r.keys = nil
		return keyFile.error(r.file, err)
	}
	data, _, err := keyFile.read(r.file)
	if err != nil {
		r.keys = nil
		return err
	}
	entries, err := parseFile(r.file, data)
	switch {
	case err == nil:
		r.take(entries)
		r.told = ""
	case before == nil || r.kept == nil:
		r.keys = nil
		return err
	default:
		if r.told == "" {
			r.brokenAt = now
		}
		if now.Sub(r.brokenAt) >= r.keep {
			r.keys = nil
			return fmt.Errorf("%w: the keys read before held for %v and do not any more", err, r.keep)
		}
		if r.told != err.Error() {
			r.told = err.Error()
			r.kept(err)
		}
	}
	r.info, r.readAt = info, now
	return nil
}

func (r *Resolver) take(entries []Entry) {
	r.keys = nil
	for _, e := range entries {
		k := key{entry: e, principal: e.Principal()}
		_, _ = hex.Decode(k.sum[:], []byte(e.SHA256)) // it was checked when it was read
		r.keys = append(r.keys, k)
	}
}
