package identity

import (
	"cmp"
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

// DefaultCache is the default of [Options].Cache.
const DefaultCache = time.Minute

// Options are the options of [New].
type Options struct {
	// File is the path of the key file.
	File string
	// Cache is how long the content of the file is used before the file is read again. A
	// revoked key stops working within this time. 0 means [DefaultCache].
	Cache time.Duration
	// Kept, if not nil, is called with the reason when the file has changed and can no longer
	// be parsed, once for each reason. The keys that were read before stay valid until the
	// file can be parsed again, but at most for Keep. Without Kept, no key is valid meanwhile.
	// If the file is missing or open to others, no key is valid in any case.
	Kept func(error)
	// Keep bounds how long a revoked key stays valid while the file cannot be parsed; 0 means
	// ten times Cache.
	Keep time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// A Resolver finds the owner of a key. It is safe for use by several goroutines, and stores
// only hashes of keys.
type Resolver struct {
	o Options

	mu       sync.Mutex // guards the fields below
	keys     []key
	info     fs.FileInfo // of the file when it was read; nil before the first successful read
	readAt   time.Time
	reported string    // the parse error that was reported to Kept; "" if the file is valid
	brokenAt time.Time // time of the first parse error
}

// key is an entry, prepared for Resolve.
type key struct {
	sum       [sha256.Size]byte
	entry     Entry
	principal *sessionstate.Principal
}

// New returns a Resolver for o.File. The first Resolve reads the file.
func New(o Options) *Resolver {
	o.Cache = cmp.Or(o.Cache, DefaultCache)
	o.Keep = cmp.Or(o.Keep, 10*o.Cache)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Resolver{o: o}
}

// Resolve returns the owner of the key. The errors are [ErrUnknownKey], [ErrExpired],
// [ErrRevoked] and [ErrFile], each with a reason, and the context's error; none contains the
// credential. If the file can no longer be read, all keys become invalid after the cache time.
//
// If the key is unknown and the file has changed, Resolve reads the file again immediately, so
// that a new key works without delay.
func (r *Resolver) Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(credential)))
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Now()
	fresh := r.info != nil && now.Sub(r.readAt) < r.o.Cache
	found := r.findLocked(sum)
	if !fresh || found == nil && r.changedLocked() {
		if err := r.readLocked(now); err != nil {
			return nil, err
		}
		found = r.findLocked(sum)
	}
	if found == nil {
		return nil, fmt.Errorf("%w: it is not in %s: make one with attache key create", ErrUnknownKey, r.o.File)
	}
	if err := found.entry.Check(now); err != nil {
		return nil, err
	}
	return found.principal, nil
}

// Refresh reads the file immediately, for a caller that knows that it has changed. The error is
// that of [Resolver.Resolve].
func (r *Resolver) Refresh() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readLocked(r.o.Now())
}

// findLocked returns the key with the given hash, nil if there is none. It compares the hash
// with all keys in constant time, so that its duration reveals nothing.
func (r *Resolver) findLocked(sum [sha256.Size]byte) *key {
	var found *key
	for i := range r.keys {
		if subtle.ConstantTimeCompare(r.keys[i].sum[:], sum[:]) == 1 {
			found = &r.keys[i]
		}
	}
	return found
}

// changedLocked reports whether the file has changed since it was read. It returns true if the
// file cannot be examined: reading it then returns the reason.
func (r *Resolver) changedLocked() bool {
	info, err := os.Stat(r.o.File)
	return err != nil || !isUnchanged(r.info, info)
}

// readLocked reads the file. After an error no keys are left.
func (r *Resolver) readLocked(now time.Time) error {
	before := r.info
	r.info = nil // stays so after an error, so that the next Resolve reads again
	data, info, err := keyFile.read(r.o.File)
	if err != nil {
		r.keys = nil
		return err
	}
	entries, err := parseFile(r.o.File, data)
	switch {
	case err == nil:
		r.setKeysLocked(entries)
		r.reported = ""
	case before == nil || r.o.Kept == nil:
		r.keys = nil
		return err
	default:
		if r.reported == "" {
			r.brokenAt = now
		}
		if now.Sub(r.brokenAt) >= r.o.Keep {
			r.keys = nil
			return fmt.Errorf("%w: the keys read before stayed valid for %v and are now refused", err, r.o.Keep)
		}
		if r.reported != err.Error() {
			r.reported = err.Error()
			r.o.Kept(err)
		}
	}
	r.info, r.readAt = info, now
	return nil
}

func (r *Resolver) setKeysLocked(entries []Entry) {
	r.keys = nil
	for _, e := range entries {
		k := key{entry: e, principal: e.Principal()}
		_, _ = hex.Decode(k.sum[:], []byte(e.SHA256)) // checked by keyYAML.entry
		r.keys = append(r.keys, k)
	}
}
