package sessions

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// storeTime is how long a Store may take for an answer.
const storeTime = 10 * time.Second

// A Keeper asks a Store for a front. While a session is being taken or left, the requests
// for it wait.
type Keeper struct {
	store  Store
	log    *slog.Logger
	failed atomic.Bool // the last Save or Leave has failed, and was logged
	warned atomic.Int64

	mu   sync.Mutex
	held map[Key]*hold
}

// A hold makes the requests for a session wait.
type hold struct {
	n    int // of holders
	over chan struct{}
}

// NewKeeper returns a Keeper.
func NewKeeper(store Store, log *slog.Logger) *Keeper {
	return &Keeper{store: store, log: log, held: map[Key]*hold{}}
}

// Hold makes requests for a session wait until Free is called as often as Hold.
func (k *Keeper) Hold(key Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holdLocked(key)
}

func (k *Keeper) holdLocked(key Key) {
	h := k.held[key]
	if h == nil {
		h = &hold{over: make(chan struct{})}
		k.held[key] = h
	}
	h.n++
}

// Free ends a Hold.
func (k *Keeper) Free(key Key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.held[key]
	if h.n--; h.n == 0 {
		delete(k.held, key)
		close(h.over)
	}
}

// Begin holds a session and returns true. If it is held already, Begin waits until it is
// not, and returns false: the session may be there now.
func (k *Keeper) Begin(ctx context.Context, key Key) (bool, error) {
	k.mu.Lock()
	h := k.held[key]
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

// Take asks for a session that is held.
func (k *Keeper) Take(ctx context.Context, key Key) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return k.store.Take(ctx, key)
}

// GiveBack lets any front take a session that was taken and cannot go on here.
func (k *Keeper) GiveBack(key Key) { k.leave(key, false) }

// save keeps a session. Without it the session goes on here, and nowhere else.
func (k *Keeper) save(key Key, s Session) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	k.note(k.store.Save(ctx, key, s))
}

// leave leaves a session.
func (k *Keeper) leave(key Key, ended bool) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	k.note(k.store.Leave(ctx, key, ended))
}

// note logs the first of several failures.
func (k *Keeper) note(err error) {
	if err == nil {
		k.failed.Store(false)
	} else if !k.failed.Swap(true) {
		k.log.Warn("sessions are not kept now, so they may not go on after a restart", "err", err)
	}
}

// Elsewhere returns the front that a request should have gone to, "" for none.
func (k *Keeper) Elsewhere(ctx context.Context, key Key) string {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	front, err := k.store.Elsewhere(ctx, key)
	if err != nil {
		return ""
	}
	return front
}

// warnTime is the time between two warnings of the same kind.
const warnTime = time.Minute

// Misled logs that a request came for a session of another front.
func (k *Keeper) Misled(front string) {
	now, last := time.Now().UnixNano(), k.warned.Load()
	if last != 0 && now-last < int64(warnTime) || !k.warned.CompareAndSwap(last, now) {
		return
	}
	k.log.Warn("a request came for a session that another front has, and was refused with 503: have the balancer send the requests of a session to one front, by the header Mcp-Session-Id, as packaging/nginx.conf does", "front", front)
}

// Forget forgets a session that is kept and that this front does not have, and reports whether
// there was one. The error is ErrElsewhere for a session of another front.
func (k *Keeper) Forget(ctx context.Context, key Key) (known bool, err error) {
	k.Hold(key)
	defer k.Free(key)
	switch _, err := k.Take(ctx, key); {
	case errors.Is(err, ErrNone):
		return false, nil
	case err != nil:
		return false, err
	}
	k.leave(key, true)
	return true, nil
}
