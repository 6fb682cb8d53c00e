package fronts

import (
	"context"
	"sync"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

const (
	// endTime is how long the deletion of a session waits for others to join. Only requests for
	// that session wait for it, and they are then refused.
	endTime = 10 * time.Millisecond
	// mostEndings is the number of sessions that one statement can delete.
	mostEndings = 8
)

// deleteEnded deletes mostEndings sessions. The concatenation with an empty text keeps SQLite from using
// the index on front, with which it would read all sessions of the front.
const deleteEnded = `DELETE FROM front_sessions WHERE tenant = ?1 AND server = ?2 AND front || '' = ?3
	AND id IN (?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)`

// endings deletes ended sessions in batches: one statement for each session would take half as
// long as the rest of a short session, and Save would wait for it.
type endings struct {
	mu   sync.Mutex
	next *ending // the batch that sessions may join; nil for none
}

// An ending is a batch of sessions that one statement deletes.
type ending struct {
	ids  []any
	full chan struct{} // closed when no other session may join
	over chan struct{} // closed when err is set
	err  error
}

// join adds a session to the next batch. If first is true, the caller must delete the batch.
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

// wait waits until the batch is full or endTime has passed. After it no session can join.
func (a *endings) wait(ctx context.Context, e *ending) {
	select {
	case <-e.full:
	case <-time.After(endTime):
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
