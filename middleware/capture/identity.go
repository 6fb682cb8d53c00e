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

// A Credential is what a client sent to say who it acts for.
type Credential struct {
	// Key is the key of _meta it came under, [CredentialKey] or [TokenKey].
	Key string
	// Text is the credential itself; "" if none came, and the operator's counts.
	Text string
}

const (
	// patience is how long a request waits for the look-up of its credential, unless the options
	// say otherwise.
	patience = 3 * time.Second
	// retryAfter is the least time between two look-ups after a temporary failure.
	retryAfter = 10 * time.Second
	// batchPatience is how long a member of a batch, which cannot be held back, waits, and with
	// it every later message of the client. It is enough to look at a file.
	batchPatience = 100 * time.Millisecond
	// maxConversations bounds the table of conversations and their credentials: the client
	// chooses the keys.
	maxConversations = 10_000
	// maxCredentialBytes bounds the credentials that are kept and the results of their look-ups,
	// as [identity.size] estimates them.
	maxCredentialBytes = 16 << 20
)

// ErrLate means that a look-up takes longer than a request waits. Nobody is identified until
// it ends; calls that come meanwhile do not wait for it.
var ErrLate = errors.New("who the session acts for could not be looked up in time")

// A digest identifies a credential.
type digest [sha256.Size]byte

// identities holds the credentials of a connection's sessions and their owners.
type identities struct {
	mu     sync.Mutex
	own    *identity         // of what comes without a credential
	of     map[string]digest // the credential that came last in a session
	known  credentials
	logged map[string]bool // why a credential was not used
}

// An identity is a credential and its owner. The look-up runs in a goroutine of its own, one at
// a time.
type identity struct {
	credential Credential
	sum        digest

	// Guarded by identities.mu.
	known     bool      // a look-up is over
	at        time.Time // when that look-up began
	retry     time.Time // when the next may begin, if a later one had no answer
	principal *sessionstate.Principal
	err       error         // why there is no credential's principal
	soon      bool          // the failure is one that passes: ask again soon
	pending   chan struct{} // closed when the look-up under way is over; nil if none is
	late      bool          // pending was waited for in vain
	stale     bool          // pending began before what is asked had changed
}

// credentials are the identities of the credentials that came, bounded in bytes. The one that
// was used longest ago is dropped first. The zero value is empty.
type credentials struct {
	by    map[digest]*list.Element // of *identity
	order list.List                // the front was used last
	bytes int
}

// get returns the identity of a credential, nil if it is not kept.
func (t *credentials) get(sum digest) *identity {
	at, ok := t.by[sum]
	if !ok {
		return nil
	}
	t.order.MoveToFront(at)
	return at.Value.(*identity)
}

// add keeps the identity of a new credential.
func (t *credentials) add(id *identity) {
	if t.by == nil {
		t.by = map[digest]*list.Element{}
	}
	t.by[id.sum] = t.order.PushFront(id)
	for t.bytes += id.size(); t.bytes > maxCredentialBytes; {
		oldest := t.order.Remove(t.order.Back()).(*identity)
		delete(t.by, oldest.sum)
		t.bytes -= oldest.size()
	}
}

// size estimates how many bytes an identity takes: a principal made from a token can be a few
// times as long.
func (id *identity) size() int { return 1024 + 6*len(id.credential.Text) }

// identityOf returns the identity of a frame; nil if nobody is to be identified. A frame without
// a credential has the identity of the last credential in its session if it inherits, and the
// operator's otherwise.
func (c *Conn) identityOf(ctx context.Context, session string, inherits bool, f *facts) *identity {
	credential := c.acceptedCredential(ctx, f)
	if c.resolve == nil {
		return nil
	}
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	sum, known := c.who.of[session]
	switch {
	case credential.Text != "":
		sum = sha256.Sum256([]byte(credential.Key + "\x00" + credential.Text))
	case !known:
		return c.who.own
	case !inherits:
		delete(c.who.of, session)
		return c.who.own
	}
	id := c.who.known.get(sum)
	if credential.Text == "" {
		return cmp.Or(id, c.who.own)
	}
	if id == nil {
		credential.Text = strings.Clone(credential.Text) // not the whole frame
		id = &identity{credential: credential, sum: sum}
		c.who.known.add(id)
	}
	if !known && len(c.who.of) >= maxConversations {
		clear(c.who.of)
	}
	c.who.of[strings.Clone(session)] = sum
	return id
}

// acceptedCredential returns the credential of a frame if the operator allows it. It logs once
// that a credential was not used, and why.
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
			c.logUnused(ctx, ", as it is empty or no text: send it as a text", key)
		}
	}
	return credential
}

// logUnused logs once for each reason that a credential was cut out and not used.
func (c *Conn) logUnused(ctx context.Context, why string, key ...string) {
	c.who.mu.Lock()
	before := c.who.logged[why]
	c.who.logged[why] = true
	c.who.mu.Unlock()
	if !before {
		c.log.WarnContext(ctx, "a credential in _meta was cut out and not used"+why, "key", strings.Join(key, " or "))
	}
}

// A finding is the owner of an identity for one frame: nobody and [ErrLate] while it is not
// known.
type finding struct {
	principal *sessionstate.Principal
	err       error
}

// lookUp starts a look-up of id if its owner is not known, or was looked up too long ago. The
// finding is for the frame m, at now: a moment later it may be another. If there is no
// finding, pending is what a request has to wait for, nil if a request has waited for it in
// vain.
//
// The look-up begins when a quarter of the time is left, so that a busy session continues with
// the last owner meanwhile; without an answer it is repeated in that quarter. After another
// temporary failure it is repeated sooner, and no request waits for it.
func (c *Conn) lookUp(id *identity, m *wire.Message, now time.Time) (found finding, pending <-chan struct{}) {
	if id == nil {
		return finding{}, nil
	}
	if id == c.who.own && c.owner != nil {
		if p, err, ok := c.owner(m); ok {
			return c.settle(id, p, err, now, nil), nil
		}
	}
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	age := now.Sub(id.at)
	begin := c.o.Recheck - c.o.Recheck/4
	switch {
	case id.soon:
		begin = min(retryAfter, c.o.Recheck)
	case id.err != nil:
		begin = c.o.Recheck
	}
	early := age < c.o.Recheck && now.Before(id.retry)
	if id.pending == nil && (!id.known || age >= begin && !early) {
		id.pending = make(chan struct{})
		go c.identify(id, id.pending)
	}
	switch {
	case id.known && (id.soon || age < c.o.Recheck):
		return finding{id.principal, id.err}, nil
	case id.late:
		return finding{err: ErrLate}, nil
	}
	return finding{err: ErrLate}, id.pending
}

// identify looks id up, once, in a goroutine of its own.
func (c *Conn) identify(id *identity, pending chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Patience)
	defer cancel()
	began := c.sessions.Now()
	p, err := c.resolve(ctx, id.credential)
	c.settle(id, p, err, began, pending)
	close(pending) // after the log was written, for those who wait
}

// settle takes the result of a look-up of id that began at that time, and returns it. over is
// the pending of that look-up, nil if nobody waits for it.
func (c *Conn) settle(id *identity, p *sessionstate.Principal, err error, began time.Time, over chan struct{}) finding {
	c.who.mu.Lock()
	if over != nil && c.holdsWithoutAnswerLocked(id, err) {
		id.pending, id.retry = nil, began.Add(retryAfter)
		found := finding{id.principal, id.err}
		c.who.mu.Unlock()
		return found
	}
	before := id.err
	if err != nil && before != nil && before.Error() == err.Error() {
		err = before // the same one, so that contexts stay the same
	}
	other := id.late || id.known && (!p.Same(id.principal) || (err == nil) != (before == nil))
	if !id.known || !p.Same(id.principal) {
		id.principal = p
	}
	id.known, id.at, id.err, id.late = true, began, err, false
	if id.stale {
		id.at, id.stale = time.Time{}, false
	}
	id.soon, id.retry = err != nil && c.o.Passing(err), time.Time{}
	if over != nil {
		id.pending = nil
	}
	found := finding{id.principal, id.err}
	c.who.mu.Unlock()
	switch {
	case err != nil && err != before:
		c.log.Warn("nobody could be identified; calls go on without a principal", "err", err)
	case err == nil && before != nil:
		c.log.Info("the session is identified again")
	}
	if other && c.changed != nil {
		go c.changed()
	}
	return found
}

// holdsWithoutAnswerLocked reports whether the owner that was found before holds although a later
// look-up failed with err: its source did not answer, and the time of the owner is not over.
func (c *Conn) holdsWithoutAnswerLocked(id *identity, err error) bool {
	return err != nil && c.o.Unanswered(err) && id.known && id.err == nil && c.sessions.Now().Sub(id.at) < c.o.Recheck
}

// Recheck makes every session look up its owner again at its next request, because the source of
// Identify has changed. Sessions without a credential of their own, which are most, are looked
// up at once if they were before.
func (c *Conn) Recheck() {
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	forget := func(id *identity) {
		id.at, id.stale = time.Time{}, id.pending != nil
	}
	forget(c.who.own)
	for at := c.who.known.order.Front(); at != nil; at = at.Next() {
		forget(at.Value.(*identity))
	}
	if own := c.who.own; own.known && own.pending == nil && c.resolve != nil {
		own.pending = make(chan struct{})
		go c.identify(own, own.pending)
	}
}

// await returns the result of the look-up. A request that was held back for it gets the result
// at once; a message that could not be held back waits here.
func (c *Conn) await(id *identity, pending <-chan struct{}) finding {
	select {
	case <-pending:
		return c.whoIs(id)
	default:
	}
	t := time.NewTimer(batchPatience)
	defer t.Stop()
	select {
	case <-pending:
		return c.whoIs(id)
	case <-t.C:
		c.noteTimeout(id, pending)
		return finding{err: ErrLate}
	}
}

// whoIs returns the owner that a finished look-up has found for id.
func (c *Conn) whoIs(id *identity) finding {
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	return finding{id.principal, id.err}
}

// noteTimeout notes that a request has waited for pending until its patience was over, so that
// no other request waits.
func (c *Conn) noteTimeout(id *identity, pending <-chan struct{}) {
	c.who.mu.Lock()
	first := id.pending == pending && !id.late
	id.late = id.late || first
	c.who.mu.Unlock()
	if first {
		c.log.Warn("nobody is identified yet; calls go on without a principal until the look-up is over")
	}
}

// An identifiedView is a context with the principal found for it. It is kept because the next
// frame usually has the same principal. The session keeps no principal: it may be large, and in
// the modern era it differs from frame to frame.
type identifiedView struct {
	of    *sessionstate.Context
	found finding
	view  *sessionstate.Context
}

// withPrincipal returns a session's context with the principal found for id. It runs in the
// client's direction.
func (c *Conn) withPrincipal(known *sessionstate.Context, id *identity, found finding) *sessionstate.Context {
	if id == nil || known.Principal == found.principal && known.Unidentified == found.err {
		return known
	}
	if c.view.of != known || c.view.found != found {
		c.view = identifiedView{known, found, known.With(func(ctx *sessionstate.Context) {
			ctx.Principal, ctx.Unidentified = found.principal, found.err
		})}
	}
	return c.view.view
}

// Credential returns the last credential of a session, without a text if the last request had
// none. It is for a policy source that acts for the session.
func (c *Conn) Credential(session string) Credential {
	c.who.mu.Lock()
	defer c.who.mu.Unlock()
	if sum, ok := c.who.of[session]; ok {
		if id := c.who.known.get(sum); id != nil {
			return id.credential
		}
	}
	return Credential{}
}
