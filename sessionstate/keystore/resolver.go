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
	// maxAnswers bounds the cache, because clients can send keys that do not exist.
	maxAnswers = 10_000
	// maxLookups is the maximum number of simultaneous look-ups. It leaves connections to the
	// database for other parts of the process.
	maxLookups = 4
	// lookupTime is the timeout of a look-up, which includes waiting for a slot.
	lookupTime = 3 * time.Second
)

// A Resolver finds the owner of a key. It asks the database at most once per cache time for each
// key, known or not, and stores only hashes of keys. While the database does not answer, cached
// answers stay valid until their cache time is over, and then no key is accepted.
type Resolver struct {
	*answers
	cache time.Duration
}

// answers are cached answers of the database, shared by several Resolvers.
type answers struct {
	find    func(ctx context.Context, hash string) (*identity.Entry, error)
	now     func() time.Time
	lookups singleflight.Group // by hash
	slots   chan struct{}

	mu     sync.Mutex // guards the fields below
	byHash map[string]answer
	round  int // number of calls of Refresh
}

type answer struct {
	entry     *identity.Entry // nil for an unknown key
	principal *sessionstate.Principal
	at        time.Time // time of the question
	round     int       // answers.round at that time
}

// NewResolver returns a Resolver for the keys of s that caches answers for the given time. A nil
// clock stands for time.Now.
func NewResolver(s *Store, cache time.Duration, now func() time.Time) *Resolver {
	if now == nil {
		now = time.Now
	}
	return &Resolver{&answers{find: s.find, now: now, slots: make(chan struct{}, maxLookups), byHash: map[string]answer{}}, cache}
}

// For returns a Resolver that shares the answers of r, but with another cache time.
func (r *Resolver) For(cache time.Duration) *Resolver { return &Resolver{r.answers, cache} }

// Refresh makes the Resolver ask the database again for each key. Until then, earlier answers
// are used only if the database does not answer.
func (r *Resolver) Refresh() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round++
}

// Resolve implements [identity.Identifier]. The errors are those of [identity.Resolver], and
// [identity.ErrKeyStore] if the database does not answer.
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

// known returns the cached answer for a key, whether it is still usable, and whether it is from
// after the last Refresh.
func (r *Resolver) known(hash string) (a answer, usable, current bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, ok := r.byHash[hash]
	age := r.now().Sub(a.at)
	return a, ok && age >= 0 && age < r.cache, a.round == r.round
}

// lookUp asks the database. Simultaneous callers share one look-up for a key, which continues
// when its caller gives up.
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
	a := answer{at: r.now(), round: r.round} // before the question, so that no later change is missed
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

// hasRoomLocked reports whether the answer for hash may be cached. If the cache is full, it
// removes all unknown keys, which clients can invent, and only for a known key all others.
func (r *Resolver) hasRoomLocked(hash string, known bool) bool {
	if _, ok := r.byHash[hash]; ok || len(r.byHash) < maxAnswers {
		return true
	}
	maps.DeleteFunc(r.byHash, func(_ string, a answer) bool { return a.entry == nil })
	if known && len(r.byHash) >= maxAnswers {
		clear(r.byHash)
	}
	return len(r.byHash) < maxAnswers
}

// owner returns the owner of the key, or an error if the key is not valid at now.
func (a answer) owner(now time.Time) (*sessionstate.Principal, error) {
	if a.entry == nil {
		return nil, fmt.Errorf("%w: it is not in the shared database: make one with attache key create, or bring a key file there with attache key import", identity.ErrUnknownKey)
	}
	if err := a.entry.Check(now); err != nil {
		return nil, err
	}
	return a.principal, nil
}

var _ identity.Identifier = (*Resolver)(nil)
