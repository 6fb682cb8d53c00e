package database

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is the PostgreSQL channel on which processes notify each other of changes.
const channel = "attache"

// checkEvery is how often an idle connection is checked: a dead connection that was never
// closed looks like an idle one.
const checkEvery = time.Minute

// errNoChanges is returned if a server accepts LISTEN but takes no changes, so it sends no notices. It may be an old
// primary that was set to read-only after a failover.
var errNoChanges = errors.New("the server takes no changes: default_transaction_read_only is on")

// Notify notifies listening processes of a change when the transaction is committed. Use it only
// for rare and urgent changes, because the server commits notifying transactions one after
// another. On a file it does nothing.
func (t *Tx) Notify(payload string) error {
	if t.db.server == nil {
		return nil
	}
	_, err := t.to.exec(t.ctx, `SELECT pg_notify($1, $2)`, []any{channel, payload})
	return err
}

// listeners are the functions registered with [Server.OnNotice].
type listeners struct {
	mu  sync.Mutex
	all map[*func(payload string)]bool
}

// OnNotice registers f to be called with the payload of each notice that [Server.Listen]
// receives. f is also called with "" each time that Listen has connected, because notices may
// have been lost before. Notices are hints. f must not block, nor call OnNotice or stop. stop removes f, and
// returns when f is not running.
func (s *Server) OnNotice(f func(payload string)) (stop func()) {
	l := &s.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[&f] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, &f)
	}
}

func (l *listeners) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all) == 0
}

func (l *listeners) notify(payload string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for f := range l.all {
		(*f)(payload)
	}
}

// Listen receives notices until ctx is done, on its own connection. pgbouncer passes no notices
// in transaction mode. Listen reopens a lost connection after the same pauses as the breaker;
// meanwhile callers must ask the database. It returns immediately if nobody has called OnNotice.
func (s *Server) Listen(ctx context.Context, log *slog.Logger) {
	if s.listeners.empty() {
		return
	}
	for pause, lost := firstOpen, false; ; pause = min(2*pause, s.breaker.longest) {
		err := s.listen(ctx, func() {
			if lost {
				log.Debug("the shared database sends notices again")
			}
			pause, lost = firstOpen, false
		})
		if ctx.Err() != nil {
			return
		}
		if !lost {
			log.Debug("the shared database sends no notices until it is connected again; attache polls meanwhile", "err", err)
		}
		lost = true
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// listen receives notices until the connection is lost. It calls connected when it has begun.
func (s *Server) listen(ctx context.Context, connected func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeouts.Connect)
		defer cancel()
		_ = conn.Close(end)
	}()
	subscribe := func() error { // it is also the check of an idle connection, because repeating it is allowed
		limited, cancel := context.WithTimeout(ctx, s.o.Timeouts.All)
		defer cancel()
		// PostgreSQL also reports the setting to each new client. But pgbouncer reports the value at the time when pgbouncer
		// connected.
		var readOnly string
		if err := conn.QueryRow(limited, `SHOW default_transaction_read_only`).Scan(&readOnly); err != nil {
			return err
		}
		if readOnly == "on" {
			return errNoChanges
		}
		_, err := conn.Exec(limited, `LISTEN `+channel)
		return err
	}
	if err := subscribe(); err != nil {
		return err
	}
	connected()
	s.listeners.notify("")
	for {
		quiet, cancel := context.WithTimeout(ctx, s.checkEvery)
		notice, err := conn.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			s.listeners.notify(notice.Payload)
		case ctx.Err() != nil || conn.IsClosed():
			return err
		default: // idle: check the connection
			if err := subscribe(); err != nil {
				return err
			}
		}
	}
}
