package sessions

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// storeTime is how long a Store may take to answer.
const storeTime = 10 * time.Second

// A Keeper uses a Store for a front. While the front takes or leaves a session, requests for
// the session wait.
type Keeper struct {
	store  Store
	log    *slog.Logger
	failed atomic.Bool // the last Save or Leave failed, which was logged
	warned atomic.Int64

	mu    sync.Mutex // never held during a call to the Store
	holds map[Key]*hold
}

// A hold makes requests for a session wait.
type hold struct {
	n    int // calls of holdLocked without Free
	over chan struct{}
}

// NewKeeper returns a Keeper.
func NewKeeper(store Store, log *slog.Logger) *Keeper {
	return &Keeper{store: store, log: log, holds: map[Key]*hold{}}
}

// holdLocked makes requests for a session wait until Free is called as often as holdLocked. The caller
// holds k.mu.
func (k *Keeper) holdLocked(key Key) {
	h := k.holds[key]
	if h == nil {
		h = &hold{over: make(chan struct{})}
		k.holds[key] = h
	}
	h.n++
}

// Free ends what Begin or Entry.Part has begun.
func (k *Keeper) Free(key Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.holds[key]
	if h.n--; h.n == 0 {
		delete(k.holds, key)
		close(h.over)
	}
}

// Begin holds a session and returns true. If the session is already held, Begin waits until
// it is free and returns false: this front may have the session now.
func (k *Keeper) Begin(ctx context.Context, key Key) (bool, error) {
	k.mu.Lock()
	h := k.holds[key]
	if h == nil {
		k.holdLocked(key)
		k.mu.Unlock()
		return true, nil
	}
	k.mu.Unlock()
	select {
	case <-h.over:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// Take takes a session, which the caller holds, from the Store.
func (k *Keeper) Take(ctx context.Context, key Key) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return k.store.Take(ctx, key)
}

// GiveBack leaves a session that this front took but cannot continue, so that any front may
// take it.
func (k *Keeper) GiveBack(key Key) { k.leave(key, false) }

// save stores a session. After an error the session continues in this front only.
func (k *Keeper) save(key Key, s Session) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	err := k.store.Save(ctx, key, s)
	k.note(err)
	return err
}

// leave leaves a session.
func (k *Keeper) leave(key Key, ended bool) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	k.note(k.store.Leave(ctx, key, ended))
}

// note logs the first of consecutive failures.
func (k *Keeper) note(err error) {
	if err == nil {
		k.failed.Store(false)
	} else if !k.failed.Swap(true) {
		k.log.Warn("sessions cannot be stored now, so they may not continue after a restart", "err", err)
	}
}

// Elsewhere returns the address of the front that should have got a request for the session,
// "" if there is none or the Store could not answer.
func (k *Keeper) Elsewhere(ctx context.Context, key Key) string {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	front, err := k.store.Elsewhere(ctx, key)
	if err != nil {
		return ""
	}
	return front
}

// warnTime is the minimum time between two warnings about misrouted requests.
const warnTime = time.Minute

// Misled logs that this front got a request for a session of another front.
func (k *Keeper) Misled(front string) {
	now, last := time.Now().UnixNano(), k.warned.Load()
	if last != 0 && now-last < int64(warnTime) || !k.warned.CompareAndSwap(last, now) {
		return
	}
	k.log.Warn("a request came for a session that another front has, and was refused with 503: that is normal after a front was restarted behind packaging/nginx.conf, which then asks the right one; else have the balancer send the requests of a session to one front, by the header Mcp-Session-Id", "front", front)
}

// Forget deletes a stored session that the caller holds, and reports whether there was one. It returns ErrElsewhere if the session belongs to another front.
func (k *Keeper) Forget(ctx context.Context, key Key) (known bool, err error) {
	switch _, err := k.Take(ctx, key); {
	case errors.Is(err, ErrNone):
		return false, nil
	case err != nil:
		return false, err
	}
	k.leave(key, true)
	return true, nil
}
