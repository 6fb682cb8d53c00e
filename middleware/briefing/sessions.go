package briefing

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate"
)

// Bounds of the table of sessions. Conversation keys are the client's to choose, so
// their number is not. What is forgotten costs another look-up: the turns know which
// sessions were briefed.
const (
	maxSessions     = 10_000
	maxSessionBytes = 16 << 20 // of keys and texts
	maxLookups      = 8        // at once
	maxWaiting      = 256      // look-ups that wait for one of these
	sessionBytes    = 512      // about what a session takes without its key and texts
)

const (
	// retryAfter is how long a source is not asked again after it has failed.
	retryAfter = 30 * time.Second
	// lookupLimit bounds a look-up even if the source ignores its context.
	lookupLimit = 30 * time.Second
)

// sessions is the table of the sessions of a process, and their look-ups.
type sessions struct {
	slots chan struct{} // holds one element for each look-up under way

	mu      sync.Mutex
	byKey   map[string]*session
	texts   map[string]string // the texts, one copy of each
	bytes   int               // about what byKey and texts take
	waiting int               // look-ups that were begun and are not over
	alone   bool              // Options.UserTurns is not used any more
}

// session is the briefing of one session, as far as it is known. sessions.mu guards the fields,
// except those that are written before ready is closed.
type session struct {
	ready     chan struct{}
	text      string // "" when there is nothing to give; written before ready is closed
	why       string // why there is nothing to give; written before ready is closed
	scope     string // whose policies they are; written before ready is closed
	principal *sessionstate.Principal
	workspace string
	window    string // see Conn.window
	done      bool
	unseen    int       // how often the text was carried where the client may not show it
	retry     time.Time // when to ask a source again that failed; zero if it did not
	swept     bool      // UserTurns was swept for this session
	again     time.Time // when to ask UserTurns again; zero if they did not say no
	used      time.Time
}

// open returns the session of a call while its briefing may still be due, nil otherwise. It
// starts to fetch the briefing if that was not done.
func (c *Conn) open(view *sessionstate.Context, window string) *session {
	t, o := &c.shared.sessions, &c.shared.o
	t.mu.Lock()
	defer t.mu.Unlock()
	key, now := view.Session.Value+window, o.Now()
	s := t.byKey[key]
	if s != nil && now.Sub(s.used) > o.TTL {
		s = nil
		_, _ = o.Turns.Sweep(context.Background(), o.TTL) // it is in memory
	}
	if s != nil && s.done {
		s.used = now
		return nil
	}
	moved := s != nil && o.ByWorkspace && s.workspace != view.Workspace.Value
	if s == nil || s.principal != view.Principal || moved || !s.retry.IsZero() && now.After(s.retry) {
		if t.waiting >= maxWaiting {
			return nil // this call goes without; the turn stays open
		}
		s = &session{ready: make(chan struct{}), principal: view.Principal, workspace: view.Workspace.Value, window: window}
		t.put(strings.Clone(key), s)
		t.waiting++
		go c.fetch(s, view)
	}
	s.used = now
	if s.isReady() && (s.text == "" || now.Before(s.again)) {
		return nil
	}
	return s
}

// put keeps s under key. A full table is emptied first. The caller holds mu.
func (t *sessions) put(key string, s *session) {
	if t.byKey == nil || len(t.byKey) >= maxSessions || t.bytes >= maxSessionBytes {
		t.byKey, t.texts, t.bytes = map[string]*session{}, map[string]string{}, 0
	}
	if _, replaced := t.byKey[key]; !replaced {
		t.bytes += len(key) + sessionBytes
	}
	t.byKey[key] = s
}

// intern returns the one copy of text that the sessions share. The caller holds mu.
func (t *sessions) intern(text string) string {
	if kept, ok := t.texts[text]; ok {
		return kept
	}
	if text != "" && t.texts != nil {
		t.texts[text] = text
		t.bytes += len(text)
	}
	return text
}

// isReady reports whether the look-up is over.
func (s *session) isReady() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// fetch looks up the briefing of s, after the look-ups that were asked for before.
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
		s.retry = c.shared.o.Now().Add(retryAfter)
	}
	close(s.ready)
}

// lookUp asks the source, and renders the text. why is the reason if there is no text.
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
		warn.once("no briefing: nobody is identified and no scope is set; set ATTACHE_API_KEY, or policy.scope", nil)
		return "", "nobody is identified and no scope is set", nil
	}
	s.scope = q.Scope
	ctx, cancel := context.WithTimeout(context.Background(), lookupLimit)
	defer cancel()
	effective, err := o.Source.Effective(ctx, q)
	switch {
	case errors.Is(err, policy.ErrUnauthorized):
		warn.once("no briefing: the policy source refused the key; check ATTACHE_API_KEY", err)
	case errors.Is(err, policy.ErrUnknownScope):
		warn.once("no briefing: the policy source does not know the scope; see `attache policy show --scope`", err)
	case err != nil:
		warn.once("no briefing: the policy source could not be read; see `attache policy check`", err)
	case o.OmitEmpty && effective.Empty():
		return "", "there are no policies for this session", nil
	default:
		return policy.Render(effective, o.MaxBytes), "", nil
	}
	return "", "the policy source gave none: " + err.Error(), err
}

// finish notes that the turn of s is spent, so that the next calls of the session cost nothing.
func (t *sessions) finish(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.done = true
}

// count notes how often the text of s went out in a result that the client may not show.
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

// whyNone returns why a session gets no briefing.
func (t *sessions) whyNone(key string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch s := t.byKey[key]; {
	case s == nil:
		return "too many policies are looked up at once"
	case s.done:
		return "the session has had its briefing"
	case s.isReady() && s.text != "":
		return "it is another server's turn in this session, or was"
	default:
		return s.why
	}
}
