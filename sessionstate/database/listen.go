package database

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is the one on which processes tell each other of changes.
const channel = "attache"

// checkEvery is how often a connection that hears nothing is tried: one that is dead and was
// never closed looks like one on which nothing happens.
const checkEvery = time.Minute

// Notify tells the processes that listen of a change, when the transaction is committed. It is
// for what is rare and urgent: the server commits transactions that notify one after another.
// On a file it does nothing.
func (t *Tx) Notify(payload string) error {
	if t.db.server == nil {
		return nil
	}
	_, err := t.to.exec(t.ctx, `SELECT pg_notify($1, $2)`, []any{channel, payload})
	return err
}

// notices are those who want to hear of changes.
type notices struct {
	mu   sync.Mutex
	next int
	all  map[int]func(payload string)
}

// OnNotice has f called with the payload of each notice that [Server.Listen] hears, and with ""
// each time that it begins to hear: there may have been others before. f must not block. Notices
// are hints, which can be lost. stop ends the calls.
func (s *Server) OnNotice(f func(payload string)) (stop func()) {
	n := &s.notices
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[int]func(string){}
	}
	id := n.next
	n.next++
	n.all[id] = f
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.all, id)
	}
}

func (n *notices) wanted() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.all) > 0
}

func (n *notices) tell(payload string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		f(payload)
	}
}

// Listen hears notices until ctx is done, on a connection of its own. pgbouncer carries none
// in transaction mode. A connection that is lost is opened again after the pauses of the
// breaker; whoever needs what notices tell of asks the database meanwhile. It returns at once
// if nobody has called OnNotice before.
func (s *Server) Listen(ctx context.Context, log *slog.Logger) {
	if !s.notices.wanted() {
		return
	}
	for pause, lost := firstOpen, false; ; pause = min(2*pause, s.breaker.longest) {
		err := s.listen(ctx, func() {
			if lost {
				log.Debug("the shared database sends notices of changes again")
			}
			pause, lost = firstOpen, false
		})
		if ctx.Err() != nil {
			return
		}
		if !lost {
			log.Debug("the shared database sends no notices of changes until it is connected again; attache asks for them", "err", err)
		}
		lost = true
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// listen hears notices until the connection is lost. It calls begun when it hears them.
func (s *Server) listen(ctx context.Context, begun func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeouts.Connect)
		defer cancel()
		_ = conn.Close(end)
	}()
	ask := func() error { // it may be asked again
		limited, cancel := context.WithTimeout(ctx, s.o.Timeouts.All)
		defer cancel()
		_, err := conn.Exec(limited, `LISTEN `+channel)
		return err
	}
	if err := ask(); err != nil {
		return err
	}
	begun()
	s.notices.tell("")
	for {
		quiet, cancel := context.WithTimeout(ctx, s.checkEvery)
		notice, err := conn.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			s.notices.tell(notice.Payload)
		case ctx.Err() != nil || conn.IsClosed():
			return err
		default: // nothing was heard
			if err := ask(); err != nil {
				return err
			}
		}
	}
}
