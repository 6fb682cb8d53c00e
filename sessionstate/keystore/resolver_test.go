package keystore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A fake is a database of keys that can be unavailable, and counts look-ups.
type fake struct {
	mu     sync.Mutex
	byHash map[string]identity.Entry
	away   bool
	asked  int
	block  chan struct{} // nil to answer at once
}

func (f *fake) find(ctx context.Context, hash string) (*identity.Entry, error) {
	if f.block != nil {
		select {
		case <-f.block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.away {
		return nil, database.ErrDown
	}
	if e, ok := f.byHash[hash]; ok {
		return &e, nil
	}
	return nil, nil
}

func (f *fake) resolver() *Resolver {
	r := NewResolver(nil, time.Minute, nil)
	r.find = f.find
	return r
}

func (f *fake) add() (key string, e identity.Entry) {
	key, e, _ = identity.NewKey(ada, "", 0, time.Now())
	f.put(e)
	return key, e
}

func (f *fake) put(e identity.Entry) {
	if f.byHash == nil {
		f.byHash = map[string]identity.Entry{}
	}
	f.byHash[e.SHA256] = e
}

// Answers for known and unknown keys are used for the cache time, and then the database is asked
// again. While it does not answer, no key is accepted after that time.
func TestCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fake)
		r := f.resolver()
		good, entry := f.add()
		revoked, e := f.add()
		e.Revoked = time.Now()
		f.put(e)
		resolve := func(key string, want error, asked int) {
			t.Helper()
			p, err := r.Resolve(t.Context(), key)
			if !errors.Is(err, want) || (err == nil) != (p != nil) || f.asked != asked {
				t.Errorf("Resolve = %v, %v after %d look-ups; want %v after %d", p, err, f.asked, want, asked)
			}
			if p != nil && p.KeyID != entry.ID {
				t.Errorf("the key is %s's, want %s's", p.KeyID, entry.ID)
			}
		}
		for range 2 {
			resolve(" "+good+"\n", nil, 1)
		}
		resolve(revoked, identity.ErrRevoked, 2)
		resolve("made-up", identity.ErrUnknownKey, 3)
		time.Sleep(time.Minute - time.Millisecond)
		f.away = true
		resolve(good, nil, 3)
		resolve(revoked, identity.ErrRevoked, 3)
		resolve("made-up", identity.ErrUnknownKey, 3)
		time.Sleep(time.Millisecond)
		resolve(good, identity.ErrKeyStore, 4)
		resolve(revoked, identity.ErrKeyStore, 5)
		f.away = false
		entry.Revoked = time.Now()
		f.put(entry)
		resolve(good, identity.ErrRevoked, 6)

		// After Refresh an old answer is used only if the database does not answer.
		entry.Revoked = time.Time{}
		f.put(entry)
		resolve(good, identity.ErrRevoked, 6)
		r.Refresh()
		f.away = true
		resolve(good, identity.ErrRevoked, 7)
		f.away = false
		resolve(good, nil, 8)
		resolve(good, nil, 8)

		// Another cache time, the same answers.
		time.Sleep(time.Second)
		short := r.For(time.Second)
		if _, err := short.Resolve(t.Context(), good); err != nil || f.asked != 9 {
			t.Errorf("with a shorter cache time: %v after %d look-ups", err, f.asked)
		}
		resolve(good, nil, 9)

		// When the clock was set back, the age of an answer is not known: the key may have been revoked since.
		r.now = func() time.Time { return time.Now().Add(-time.Hour) }
		resolve(good, nil, 10)
	})
}

// A key expires even if the answer is cached.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := new(fake)
		key, e := f.add()
		e.Expires = time.Now().Add(time.Second)
		f.put(e)
		r := f.resolver()
		if _, err := r.Resolve(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := r.Resolve(t.Context(), key); !errors.Is(err, identity.ErrExpired) {
			t.Errorf("after the expiry: %v", err)
		}
	})
}

// Simultaneous callers for one key cause one look-up. If one of them gives up, the others still
// get the answer. If the database never answers, the look-up times out.
func TestOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{block: make(chan struct{})}
		key, _ := f.add()
		r := f.resolver()
		given, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 11)
		resolve := func(ctx context.Context) {
			_, err := r.Resolve(ctx, key)
			errs <- err
		}
		go resolve(given)
		synctest.Wait()
		for range 10 {
			go resolve(t.Context())
		}
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that gave up got %v", err)
		}
		close(f.block)
		for range 10 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if f.asked != 1 {
			t.Errorf("%d look-ups", f.asked)
		}
		f.block = make(chan struct{})
		begun := time.Now()
		if _, err := r.Resolve(t.Context(), "another"); !errors.Is(err, identity.ErrKeyStore) || time.Since(begun) > lookupTime {
			t.Errorf("a database that does not answer: %v after %v", err, time.Since(begun))
		}
		for range maxLookups { // other look-ups
			r.slots <- struct{}{}
		}
		if _, err := r.Resolve(t.Context(), "waits"); !errors.Is(err, identity.ErrKeyStore) {
			t.Errorf("a look-up that had to wait too long: %v", err)
		}
		if _, err := r.Resolve(given, key); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that had given up: %v", err)
		}
	})
}

// Invented keys do not fill the memory or displace known keys, and neither do very many known keys fill it.
func TestFlood(t *testing.T) {
	f := new(fake)
	key, _ := f.add()
	r := f.resolver()
	if _, err := r.Resolve(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	for i := range maxAnswers + 10 {
		_, _ = r.Resolve(t.Context(), fmt.Sprint(i))
	}
	if n := len(r.byHash); n > maxAnswers {
		t.Errorf("%d answers are cached", n)
	}
	for i := range maxAnswers - len(r.byHash) {
		_, _ = r.Resolve(t.Context(), fmt.Sprint("more ", i))
	}
	late, _ := f.add()
	if _, err := r.Resolve(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	cached := func(keys ...string) {
		t.Helper()
		f.away = true
		for _, known := range keys {
			if _, err := r.Resolve(t.Context(), known); err != nil {
				t.Errorf("a known key: %v", err)
			}
		}
		f.away = false
	}
	cached(key, late)
	for i := range maxAnswers {
		known := fmt.Sprint("known ", i)
		f.put(identity.Entry{SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(known)))})
		_, err := r.Resolve(t.Context(), known)
		check(t, err)
		if n := len(r.byHash); n > maxAnswers {
			t.Fatalf("%d answers are cached", n)
		} else if n == maxAnswers {
			_, _ = r.Resolve(t.Context(), fmt.Sprint("invented ", i))
			cached(known)
		}
	}
	cached(fmt.Sprint("known ", maxAnswers-1))
}
