package briefing

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate"
)

// MaxUnseen bounds the results that carry the text in a place that the client may not show.
const MaxUnseen = 3

// The table of sessions is bounded because the client chooses the conversation keys. A session
// that is dropped costs another look-up; the turns still hold which sessions were briefed.
const (
	maxSessions     = 10_000
	maxSessionBytes = 16 << 20 // for keys and texts
	maxLookups      = 8        // at once
	maxWaiting      = 256      // look-ups that run or wait
	sessionBytes    = 512      // estimated memory of a session without its key and texts
)

const (
	// retryAfter is how long the source is not asked again after it has failed. UserTurns is not asked again that
	// long if it fails for a session whose turn it had refused.
	retryAfter = 30 * time.Second
	// lookupLimit bounds a look-up.
	lookupLimit = 30 * time.Second
)

// sessions is the table of the sessions of a process, and their look-ups.
type sessions struct {
	slots chan struct{} // holds one element for each running look-up

	mu      sync.Mutex
	byKey   map[string]*session
	texts   map[string]string    // the texts, one copy of each
	bytes   int                  // estimated memory of byKey and texts
	waiting int                  // the number of look-ups that run or wait
	sweepAt map[string]time.Time // when the UserTurns of a tenant may be swept again
}

// session is the briefing of one session.
type session struct {
	principal *sessionstate.Principal
	workspace string
	window    string        // see Conn.window
	ready     chan struct{} // closed when the look-up has ended
	done      atomic.Bool   // whether the turn is spent, so that further calls of the session cost nothing
	unshared  atomic.Bool   // whether UserTurns failed, and is not asked again for this session
	refused   atomic.Bool   // whether UserTurns have refused the turn for a result, because another process has it

	// Written before ready is closed:
	text  string // the briefing, "" if there is none
	why   string // why there is none
	scope string // the scope of the policies

	// Guarded by sessions.mu:
	unseen   int       // how many results carried the text in a place that the client may not show
	retryAt  time.Time // when to ask the source again; zero if it did not fail
	pausedTo time.Time // when to ask for the turn again; zero if it was not refused
	used     time.Time
}

// open returns the session of a call if its briefing may still be due, or nil. It starts the
// look-up of the briefing if necessary.
func (c *Conn) open(view *sessionstate.Context, window string) *session {
	t, o := &c.shared.sessions, &c.shared.o
	t.mu.Lock()
	defer t.mu.Unlock()
	key, now := view.Session.Value+window, time.Now()
	s := t.byKey[key]
	if s != nil && now.Sub(s.used) > o.TTL {
		s = nil
		// The expired session's turn is free again. In memory, so without errors.
		_, _ = o.Turns.Sweep(context.Background(), o.TTL)
	}
	if s != nil && s.done.Load() {
		s.used = now
		return nil
	}
	moved := s != nil && o.ByWorkspace && s.workspace != view.Workspace.Value
	if s == nil || !samePolicies(s.principal, view.Principal) || moved || !s.retryAt.IsZero() && now.After(s.retryAt) {
		if t.waiting >= maxWaiting {
			return nil // a later call can still have the briefing
		}
		s = &session{ready: make(chan struct{}), principal: view.Principal, workspace: view.Workspace.Value, window: window}
		t.put(key, s)
		t.waiting++
		go c.fetch(s, view)
	}
	s.used = now
	if s.isEmpty() || s.isReady() && now.Before(s.pausedTo) {
		return nil
	}
	return s
}

// samePolicies reports whether the source gives p and q the same policies. The requests of a session of
// a front can alternate between tokens of one user that differ in permissions; each change would
// otherwise be another question to the source.
func samePolicies(p, q *sessionstate.Principal) bool {
	if p == nil || q == nil {
		return p == q
	}
	return p.KeyID == q.KeyID && p.User == q.User && p.Tenant == q.Tenant && p.Scope == q.Scope
}

// put adds s under key. It empties a full table first. The caller holds mu.
func (t *sessions) put(key string, s *session) {
	if t.byKey == nil || len(t.byKey) >= maxSessions || t.bytes >= maxSessionBytes {
		t.byKey, t.texts, t.bytes = map[string]*session{}, map[string]string{}, 0
	}
	if _, replaced := t.byKey[key]; !replaced {
		t.bytes += len(key) + sessionBytes
	}
	t.byKey[key] = s
}

// keepDone adds the sessions of another table that have had their briefing.
func (t *sessions) keepDone(other *sessions) {
	other.mu.Lock()
	defer other.mu.Unlock()
	for key, s := range other.byKey {
		if s.done.Load() {
			kept := &session{ready: s.ready, used: s.used}
			kept.done.Store(true)
			t.put(key, kept)
		}
	}
}

// intern returns the one copy of text that the sessions share. The caller holds mu.
func (t *sessions) intern(text string) string {
	if shared, ok := t.texts[text]; ok {
		return shared
	}
	if text != "" && t.texts != nil {
		t.texts[text] = text
		t.bytes += len(text)
	}
	return text
}

// isReady reports whether the look-up has ended.
func (s *session) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// isEmpty reports whether the look-up has ended without a text.
func (s *session) isEmpty() bool { return s.isReady() && s.text == "" }

// fetch looks up the briefing of s when fewer than maxLookups look-ups are running.
func (c *Conn) fetch(s *session, view *sessionstate.Context) {
	t := &c.shared.sessions
	t.slots <- struct{}{}
	text, why, err := c.lookUp(s, view)
	<-t.slots
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting--
	s.why, s.text = why, t.intern(text)
	if err != nil {
		s.retryAt = time.Now().Add(retryAfter)
	}
	close(s.ready)
}

// lookUp asks the source and renders the text. If there is no text, why is the reason.
func (c *Conn) lookUp(s *session, view *sessionstate.Context) (text, why string, err error) {
	o, warn := &c.shared.o, &c.shared.warnings
	q := policy.Query{
		Scope:         o.Scope,
		Workspace:     view.WorkspaceID.Value,
		WorkspacePath: view.Workspace.Value,
		Credential:    policy.Credential(c.o.Credential(view.Session.Value)),
	}
	if view.Principal != nil && view.Principal.Scope != "" {
		q.Scope = view.Principal.Scope
	}
	if view.Principal == nil && q.Scope == "" && q.Credential == "" && !o.Anonymous {
		warn.once("no briefing: nobody is identified and no scope is set; set ATTACHE_API_KEY, or policy.scope")
		return "", "nobody is identified and no scope is set", nil
	}
	s.scope = q.Scope
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	effective, err := o.Source.Effective(ctx, q)
	refused := errors.Is(err, policy.ErrUnauthorized) || errors.Is(err, policy.ErrUnknownScope)
	if err == nil || refused {
		c.shared.outage.ended(warn.log)
	}
	switch {
	case errors.Is(err, policy.ErrUnauthorized):
		c.refused(view.Principal, "no briefing: the policy source refused the credential; check the API key, or policy.token_env", err)
	case errors.Is(err, policy.ErrUnknownScope):
		c.refused(view.Principal, "no briefing: the policy source does not know the scope; see `attache policy show --scope`", err)
	case err != nil:
		c.shared.outage.goesOn(warn.log, err)
	case o.OmitEmpty && effective.Empty():
		return "", "there are no policies for this session", nil
	default:
		return policy.Render(effective, o.MaxBytes), "", nil
	}
	return "", "the policy source gave none: " + err.Error(), err
}

// An outage is a time in which the source cannot be read. A front sees many in its life, so each of them is
// logged, but at most one in quietTime.
type outage struct {
	mu     sync.Mutex
	logged bool      // since the source answered last
	quiet  time.Time // until then no other one is logged
}

const quietTime = time.Minute

func (o *outage) goesOn(log *slog.Logger, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); !o.logged && !now.Before(o.quiet) {
		o.logged, o.quiet = true, now.Add(quietTime)
		log.Warn("no briefing: the policy source could not be read; see `attache policy check`", "err", err)
	}
}

func (o *outage) ended(log *slog.Logger) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logged {
		o.logged = false
		log.Info("the policy source can be read again")
	}
}

// refusals holds the refusals of the source that were logged within refusedTime. Clients may begin any
// number of sessions, so those of one user are logged once in that time.
type refusals struct {
	mu     sync.Mutex
	logged map[refusal]time.Time
}

// A refusal is a text about the owner of a key.
type refusal struct{ text, key, tenant, user string }

const (
	refusedTime = time.Hour
	maxRefusals = 1000 // in refusedTime
)

// refused logs text and err with the logger of the connection, which names the user.
func (c *Conn) refused(p *sessionstate.Principal, text string, err error) {
	what := refusal{text: text}
	if p != nil {
		what = refusal{text, p.KeyID, p.Tenant, p.User}
	}
	r, now := &c.shared.refusals, time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.logged, func(_ refusal, at time.Time) bool { return now.Sub(at) >= refusedTime })
	if _, logged := r.logged[what]; logged || len(r.logged) == maxRefusals {
		return
	}
	if r.logged == nil {
		r.logged = map[refusal]time.Time{}
	}
	r.logged[what] = now
	c.warnings.log.Warn(text, "err", err)
}

// count records how many results carried the text of s in a place that the client may not show.
func (t *sessions) count(s *session, unseen int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.unseen = max(s.unseen, unseen)
}

// countOne adds one to that count.
func (t *sessions) countOne(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.unseen++
}

// isExhausted reports whether that count has reached its limit.
func (t *sessions) isExhausted(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.unseen >= MaxUnseen
}

// sweepPause is the least time between two sweeps of a tenant's UserTurns. One reads all turns of the tenant, and a
// client may begin any number of sessions.
const sweepPause = time.Minute

// sweepIsDue reports whether the UserTurns of a tenant were not swept for sweepPause. The caller then sweeps them.
func (t *sessions) sweepIsDue(tenant string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if now.Before(t.sweepAt[tenant]) {
		return false
	}
	if t.sweepAt == nil || len(t.sweepAt) >= maxSessions {
		t.sweepAt = map[string]time.Time{}
	}
	t.sweepAt[tenant] = now.Add(sweepPause)
	return true
}

// whyNone returns why a session gets no briefing.
func (t *sessions) whyNone(key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch s := t.byKey[key]; {
	case s == nil:
		return "too many policies are looked up at once"
	case s.done.Load():
		return "the session has had its briefing"
	case s.isReady() && s.text != "":
		return turnOfOther
	default:
		return s.why
	}
}

// turnOfOther is the reason for a reply without the briefing if another process has the turn.
const turnOfOther = "it is another server's turn in this session, or was"
