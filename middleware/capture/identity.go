package capture

import (
	"cmp"
	"container/list"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

const (
	// patience is the default of Options.Patience.
	patience = 3 * time.Second
	// retryAfter is the least time between two look-ups after a temporary failure.
	retryAfter = 10 * time.Second
	// batchPatience is how long a member of a batch waits, and with it every later message of
	// the client, because it cannot be suspended. It is long enough to read a file.
	batchPatience = 100 * time.Millisecond
	// maxConversations bounds the table of conversations, because the client chooses the keys.
	maxConversations = 10_000
	// maxCredentialBytes bounds the memory of credentials and their identities, as
	// [identity.size] estimates it.
	maxCredentialBytes = 16 << 20
)

// ErrLate means that a look-up takes longer than a request waits. Nobody is identified until
// it ends, and further calls do not wait for it.
var ErrLate = errors.New("who the session acts for could not be looked up in time")

// A digest identifies a credential.
type digest [sha256.Size]byte

// identities holds the credentials of a connection's sessions and their owners.
type identities struct {
	mu        sync.Mutex
	fallback  *identity         // for frames without a credential
	bySession map[string]digest // the last credential of a session
	cache     identityCache
	logged    sync.Map      // reasons for which a credential was not used
	replaced  []formerOwner // the last at the end
	returned  time.Time     // when a former owner returned and Changed was not called; zero if it was
}

// An identity is a credential and its owner. Its look-ups run one at a time.
type identity struct {
	credential Credential
	sum        digest

	// Guarded by identities.mu.
	known     bool      // whether a look-up has ended
	began     time.Time // when that look-up began
	retryAt   time.Time // no look-up begins earlier if the last one had no answer
	principal *sessionstate.Principal
	err       error         // why the credential has no principal
	temporary bool          // whether err is temporary, so that the look-up is repeated soon
	pending   chan struct{} // closed when the running look-up has ended; nil if none is running
	late      bool          // whether a request has waited for pending in vain
	stale     bool          // whether pending began before a change of its source
}

// An identityCache holds the identities of credentials, bounded in bytes. The least recently
// used one is dropped first. The zero value is empty.
type identityCache struct {
	byDigest map[digest]*list.Element // of *identity
	order    list.List                // the most recently used first
	bytes    int
}

// get returns the identity of a credential, or nil.
func (t *identityCache) get(sum digest) *identity {
	at, ok := t.byDigest[sum]
	if !ok {
		return nil
	}
	t.order.MoveToFront(at)
	return at.Value.(*identity)
}

func (t *identityCache) add(id *identity) {
	if t.byDigest == nil {
		t.byDigest = map[digest]*list.Element{}
	}
	t.byDigest[id.sum] = t.order.PushFront(id)
	for t.bytes += id.size(); t.bytes > maxCredentialBytes; {
		oldest := t.order.Remove(t.order.Back()).(*identity)
		delete(t.byDigest, oldest.sum)
		t.bytes -= oldest.size()
	}
}

// size estimates the memory of an identity: a principal made from a token can be a few times as
// long as the token.
func (id *identity) size() int { return 1024 + 6*len(id.credential.Text) }

// identityOf returns the identity of a frame, or nil if sessions are not identified. A frame
// without a credential has the identity of the last credential in its session if it inherits,
// else the operator's.
func (c *Conn) identityOf(ctx context.Context, session string, inherits bool, f *facts) *identity {
	credential := c.acceptedCredential(ctx, f)
	if c.conn.Identify == nil {
		return nil
	}
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	sum, known := c.who.bySession[session]
	switch {
	case credential.Text != "":
		sum = sha256.Sum256([]byte(credential.Key + "\x00" + credential.Text))
	case !known:
		return c.who.fallback
	case !inherits:
		delete(c.who.bySession, session)
		return c.who.fallback
	}
	id := c.who.cache.get(sum)
	if credential.Text == "" {
		return cmp.Or(id, c.who.fallback)
	}
	if id == nil {
		id = &identity{credential: credential, sum: sum}
		c.who.cache.add(id)
	}
	if !known && len(c.who.bySession) >= maxConversations {
		clear(c.who.bySession)
	}
	c.who.bySession[session] = sum
	return id
}

// acceptedCredential returns the credential of a frame if the operator allows it. It logs
// credentials that are not used.
func (c *Conn) acceptedCredential(ctx context.Context, f *facts) Credential {
	credential := f.credential
	for i, key := range CredentialKeys() {
		switch {
		case !f.carries[i]:
		case !slices.Contains(c.o.Accept, key):
			c.logUnused(ctx, ": identity.meta_api_key and identity.meta_token accept one, if the operator gives none", key)
			if credential.Key == key {
				credential = Credential{}
			}
		case f.empty[i]:
			c.logUnused(ctx, ", because it is empty or not a string: send a string", key)
		}
	}
	return credential
}

// logUnused logs that a credential was cut out and not used, once for each reason.
func (c *Conn) logUnused(ctx context.Context, why string, key ...string) {
	if _, logged := c.who.logged.LoadOrStore(why, true); !logged {
		c.conn.Log.WarnContext(ctx, "a credential in _meta was cut out and not used"+why, "key", strings.Join(key, " or "))
	}
}

// A finding is the owner of an identity for one frame; nobody and [ErrLate] while the owner is
// unknown.
type finding struct {
	principal *sessionstate.Principal
	err       error
}

// lookUp returns the owner of id for the frame m, at the time now. It starts a look-up if the
// owner is unknown or was looked up too long ago. If the owner is unknown, a request has to wait
// for pending, unless that is nil because a request has already waited in vain.
//
// The next look-up begins when three quarters of Options.Recheck have passed, so that a busy
// session continues with the last owner meanwhile. If the source does not answer, the look-up is
// repeated within the last quarter. After another temporary failure it is repeated sooner, and no
// request waits for it.
func (c *Conn) lookUp(id *identity, m *wire.Message, now time.Time) (found finding, pending <-chan struct{}) {
	if id == nil {
		return finding{}, nil
	}
	if id == c.who.fallback && c.conn.Known != nil {
		if p, err, ok := c.conn.Known(m); ok {
			return c.settle(id, p, err, now, nil), nil
		}
	}
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	age := now.Sub(id.began) // began is zero before the first look-up, so age is very long
	maxAge := c.o.Recheck - c.o.Recheck/4
	switch {
	case id.temporary:
		maxAge = min(retryAfter, c.o.Recheck)
	case id.err != nil:
		maxAge = c.o.Recheck
	}
	early := age < c.o.Recheck && now.Before(id.retryAt)
	if id.pending == nil && age >= maxAge && !early {
		id.pending = make(chan struct{})
		go c.identify(id, id.pending)
	}
	switch {
	case id.temporary || age < c.o.Recheck:
		return finding{id.principal, id.err}, nil
	case id.late:
		return finding{err: ErrLate}, nil
	}
	return finding{err: ErrLate}, id.pending
}

// identify looks up the owner of id. It runs in a goroutine of its own.
func (c *Conn) identify(id *identity, pending chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Patience)
	defer cancel()
	began := c.conn.Sessions.Now()
	p, err := c.conn.Identify(ctx, id.credential)
	c.settle(id, p, err, began, pending)
	close(pending) // after settle, so that its log line comes before the calls that wait
}

// settle stores the result of a look-up of id and returns it. pending is the channel of the
// look-up, or nil if nobody waits for it.
func (c *Conn) settle(id *identity, p *sessionstate.Principal, err error, began time.Time, pending chan struct{}) finding {
	c.who.mu.Lock()
	if pending != nil && c.keepsOwnerLocked(id, err) {
		id.pending, id.retryAt = nil, began.Add(retryAfter)
		found := finding{id.principal, id.err}
		c.who.mu.Unlock()
		return found
	}
	before := id.err
	if err != nil && before != nil && before.Error() == err.Error() {
		err = before // the same value, so that withPrincipal can use its last context
	}
	changed := id.late || id.known && (!p.Same(id.principal) || (err == nil) != (before == nil))
	if pending == nil && err == nil && before == nil {
		changed = c.announceLocked(changed, id.principal, p, began)
	}
	if !id.known || !p.Same(id.principal) {
		id.principal = p
	}
	id.known, id.began, id.err, id.late = true, began, err, false
	if id.stale { // the source has changed since, so the next request looks up again
		id.began, id.stale = time.Time{}, false
	}
	id.temporary, id.retryAt = err != nil && c.o.Passing(err), time.Time{}
	if pending != nil {
		id.pending = nil
	}
	found := finding{id.principal, id.err}
	c.who.mu.Unlock()
	switch {
	case err != nil && err != before:
		c.conn.Log.Warn("nobody could be identified; calls go on without a principal", "err", err)
	case err == nil && before != nil:
		c.conn.Log.Info("the session is identified again")
	}
	if changed && c.conn.Changed != nil {
		go c.conn.Changed()
	}
	return found
}

// keepsOwnerLocked reports whether the owner of id is still valid although a later look-up failed
// with err: the source did not answer, and Options.Recheck has not passed.
func (c *Conn) keepsOwnerLocked(id *identity, err error) bool {
	return err != nil && c.o.Unanswered(err) && id.known && id.err == nil && c.conn.Sessions.Now().Sub(id.began) < c.o.Recheck
}

// Recheck makes every session look up its owner again at its next request, because the source of
// Identify has changed. For sessions without a credential of their own, which are most, it starts
// the look-up immediately if there was one before.
func (c *Conn) Recheck() {
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	expire := func(id *identity) {
		id.began, id.stale = time.Time{}, id.pending != nil
	}
	expire(c.who.fallback)
	for at := c.who.cache.order.Front(); at != nil; at = at.Next() {
		expire(at.Value.(*identity))
	}
	if id := c.who.fallback; id.known && id.pending == nil {
		id.pending = make(chan struct{})
		go c.identify(id, id.pending)
	}
}

// await returns the result of the look-up. For a request that was suspended until the look-up
// ended, it returns immediately. A message that could not be suspended waits here.
func (c *Conn) await(id *identity, pending <-chan struct{}) finding {
	select {
	case <-pending:
	case <-time.After(batchPatience):
	}
	select {
	case <-pending: // the timer may have fired too, on a busy machine
		c.who.mu.Lock()
		defer c.who.mu.Unlock()
		return finding{id.principal, id.err}
	default:
		c.noteTimeout(id, pending)
		return finding{err: ErrLate}
	}
}

// noteTimeout records that a request has waited for pending in vain, so that no other request
// waits.
func (c *Conn) noteTimeout(id *identity, pending <-chan struct{}) {
	c.who.mu.Lock()
	first := id.pending == pending && !id.late
	id.late = id.late || first
	c.who.mu.Unlock()
	if first {
		c.conn.Log.Warn("nobody is identified yet; calls go on without a principal until the look-up is over")
	}
}

// An identifiedView is a context with the principal found for it, kept because the next frame
// usually has the same principal. The session does not keep the principal: it may be large, and
// in the modern era it differs from frame to frame.
type identifiedView struct {
	base  *sessionstate.Context // without the principal
	found finding
	view  *sessionstate.Context
}

// withPrincipal returns a session's context with the principal found for id. It runs in the
// client's direction.
func (c *Conn) withPrincipal(known *sessionstate.Context, id *identity, found finding) *sessionstate.Context {
	if id == nil || known.Principal == found.principal && known.Unidentified == found.err {
		return known
	}
	if c.view.base != known || c.view.found != found {
		c.view = identifiedView{known, found, known.With(func(ctx *sessionstate.Context) {
			ctx.Principal, ctx.Unidentified = found.principal, found.err
		})}
	}
	return c.view.view
}

// Credential returns the last credential of a session for a policy source that acts for the
// session. Its Text is "" if the session has none.
func (c *Conn) Credential(session string) Credential {
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	if sum, ok := c.who.bySession[session]; ok {
		if id := c.who.cache.get(sum); id != nil {
			return id.credential
		}
	}
	return Credential{}
}
