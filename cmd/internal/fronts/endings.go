package fronts

import (
	"context"
	"sync"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

const (
	// endTime is how long the end of a session waits for that of others. Nobody waits for it but
	// requests for that session, which are refused afterwards.
	endTime = 10 * time.Millisecond
	// mostEndings is how many sessions end by one statement.
	mostEndings = 8
)

// deleteEnded names as many sessions as mostEndings. SQLite would look at all sessions of the front,
// which has an index, instead of at these.
const deleteEnded = `DELETE FROM front_sessions WHERE tenant = ?1 AND server = ?2 AND front || '' = ?3
	AND id IN (?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`

// endings deletes sessions that have ended, several by one statement: a statement of its own for
// each would take half as long as the rest of a short session, and Save would wait for it.
type endings struct {
	mu   sync.Mutex
	next *ending // which others may join; nil for none
}

// An ending is sessions that end by one statement.
type ending struct {
	ids  []any
	full chan struct{} // closed when no other may join
	over chan struct{} // closed when err is known
	err  error
}

// join adds a session to those that end next. first says that the caller has to end them.
func (a *endings) join(id string) (e *ending, first bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if first = a.next == nil; first {
		a.next = &ending{full: make(chan struct{}), over: make(chan struct{})}
	}
	e = a.next
	if e.ids = append(e.ids, id); len(e.ids) == mostEndings {
		a.next = nil
		close(e.full)
	}
	return e, first
}

// wait returns when the ending is full or endTime is over. Nobody joins it then.
func (a *endings) wait(ctx context.Context, e *ending) {
	t := time.NewTimer(endTime)
	defer t.Stop()
	select {
	case <-e.full:
	case <-t.C:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == e {
		a.next = nil
	}
}

// end deletes a session of this front.
func (s *store) end(ctx context.Context, id string) error {
	e, first := s.endings.join(id)
	if !first {
		select {
		case <-e.over:
			return e.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.endings.wait(ctx, e)
	args := append([]any{tenant, s.server, s.id}, e.ids...)
	for range mostEndings - len(e.ids) {
		args = append(args, id)
	}
	_, e.err = s.db.Exec(ctx, database.Scope{Tenant: tenant}, deleteEnded, args...)
	close(e.over)
	return e.err
}
