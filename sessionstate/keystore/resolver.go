package keystore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

const (
	// maxAnswers bounds the cache: anybody may ask for a key that does not exist.
	maxAnswers = 10_000
	// maxLookups is how many look-ups are under way at once, so that others of the process
	// find a connection to the database.
	maxLookups = 4
	// lookupTime bounds a look-up. The database gives up sooner when it is asked.
	lookupTime = 3 * time.Second
)

// A Resolver says whose a key is. It asks the database at most once in its cache time for each
// key, known or not, and keeps only hashes of keys. While the database does not answer,
// an answer holds until its time is over, and then nobody is identified.
type Resolver struct {
	*answers
	cache time.Duration
}

// answers are what the database said, for several Resolvers.
type answers struct {
	find    func(ctx context.Context, hash string) (*identity.Entry, error)
	now     func() time.Time
	lookups singleflight.Group // by hash
	slots   chan struct{}

	mu     sync.Mutex // guards what follows
	byHash map[string]answer
	round  int // of Refresh
}

// An answer is what the database said of one key.
type answer struct {
	entry     *identity.Entry // nil for an unknown key
	principal *sessionstate.Principal
	at        time.Time
	round     int // when it was asked for
}

// NewResolver returns a Resolver for the keys of s, whose answers hold for cache. A nil clock
// stands for time.Now.
func NewResolver(s *Store, cache time.Duration, now func() time.Time) *Resolver {
	if now == nil {
		now = time.Now
	}
	return &Resolver{&answers{find: s.find, now: now, slots: make(chan struct{}, maxLookups), byHash: map[string]answer{}}, cache}
}

// For returns a Resolver that shares the answers of r and relies on each for cache.
func (r *Resolver) For(cache time.Duration) *Resolver { return &Resolver{r.answers, cache} }

// Refresh asks the database again for each key: an answer of before holds only while the
// database cannot be asked.
func (r *Resolver) Refresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round++
}

// Resolve implements [identity.Identifier]. The errors are those of [identity.Resolver], and
// [identity.ErrKeyStore] if the database does not say whose the key is.
func (r *Resolver) Resolve(ctx context.Context, credential string) (*sessionstate.Principal, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(credential)))
	hash := hex.EncodeToString(sum[:])
	known, usable, current := r.known(hash)
	if usable && current {
		return known.owner(r.now())
	}
	asked, err := r.lookUp(ctx, hash)
	switch {
	case err == nil:
		return asked.owner(r.now())
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case usable:
		return known.owner(r.now())
	}
	return nil, fmt.Errorf("%w: %w: see whether store.url is right and the database answers (attache store status)", identity.ErrKeyStore, err)
}

// known returns the answer there is for a key, whether it still holds, and whether the database
// need not be asked again.
func (r *Resolver) known(hash string) (a answer, usable, current bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.byHash[hash]
	age := r.now().Sub(a.at)
	return a, ok && age >= 0 && age < r.cache, a.round == r.round
}

// lookUp asks the database. Of several callers for one key one asks, and it goes on when its
// caller gives up.
func (r *Resolver) lookUp(ctx context.Context, hash string) (answer, error) {
	done := r.lookups.DoChan(hash, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupTime)
		defer cancel()
		select {
		case r.slots <- struct{}{}:
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
		defer func() { <-r.slots }()
		return r.ask(ctx, hash)
	})
	select {
	case result := <-done:
		a, _ := result.Val.(answer)
		return a, result.Err
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

func (r *Resolver) ask(ctx context.Context, hash string) (answer, error) {
	r.mu.Lock()
	a := answer{at: r.now(), round: r.round} // before it is asked: a later change is then seen
	r.mu.Unlock()
	var err error
	if a.entry, err = r.find(ctx, hash); err != nil {
		return answer{}, err
	}
	if a.entry != nil {
		a.principal = a.entry.Principal()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasRoomLocked(hash, a.entry != nil) {
		r.byHash[hash] = a
	}
	return a, nil
}

// hasRoomLocked keeps the cache within its bound. Unknown keys go first, which a client may make
// up, and none of them takes the place of a known one.
func (r *Resolver) hasRoomLocked(hash string, known bool) bool {
	if _, there := r.byHash[hash]; there || len(r.byHash) < maxAnswers {
		return true
	}
	maps.DeleteFunc(r.byHash, func(_ string, a answer) bool { return a.entry == nil })
	if known && len(r.byHash) >= maxAnswers {
		clear(r.byHash)
	}
	return len(r.byHash) < maxAnswers
}

// owner returns whose the key is at a time.
func (a answer) owner(now time.Time) (*sessionstate.Principal, error) {
	if a.entry == nil {
		return nil, errUnknown
	}
	if err := a.entry.Check(now); err != nil {
		return nil, err
	}
	return a.principal, nil
}

// errUnknown wraps [identity.ErrUnknownKey].
var errUnknown = fmt.Errorf("%w: it is not in the shared database: make one with attache key create, or bring a key file there with attache key import", identity.ErrUnknownKey)

var _ identity.Identifier = (*Resolver)(nil)
