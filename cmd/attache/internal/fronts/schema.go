package fronts

import (
	"context"
	"database/sql"
	"time"

	"github.com/attache-mcp/attache/sessionstate/sqlitefile"
)

// version is the version of the schema, and the file's user_version.
const version = 1

// schema has times in nanoseconds since 1970 and the types that SQLite and PostgreSQL share.
const schema = `
CREATE TABLE fronts (
	tenant TEXT NOT NULL, id TEXT NOT NULL,
	host TEXT NOT NULL,                  -- the machine
	address TEXT NOT NULL,               -- where a balancer reaches it
	service TEXT NOT NULL,               -- what it serves
	until BIGINT NOT NULL,               -- the end of its lease
	ending BIGINT NOT NULL DEFAULT 0,    -- it takes no more sessions
	PRIMARY KEY (tenant, id));
CREATE TABLE front_sessions (
	tenant TEXT NOT NULL, server TEXT NOT NULL,
	id TEXT NOT NULL,                    -- SHA-256 of the session's id
	principal TEXT NOT NULL,
	front TEXT NOT NULL DEFAULT '',      -- that has it; '' for none
	left_at BIGINT NOT NULL DEFAULT 0,   -- when it was left
	initialize TEXT NOT NULL,            -- params of the client
	version TEXT NOT NULL, capabilities TEXT NOT NULL,
	level TEXT NOT NULL, subscriptions TEXT NOT NULL,
	upstream TEXT NOT NULL,              -- what reaches the same remote session
	PRIMARY KEY (tenant, server, id));
CREATE INDEX front_sessions_front ON front_sessions (tenant, front)`

// tenant is whose rows these are: a session's id is random, so one table serves all tenants.
const tenant = ""

// lockWait is how long a statement waits while another process has the file locked.
const lockWait = 5 * time.Second

// A db is the database.
type db struct{ sql *sql.DB }

func openDB(ctx context.Context, path string) (*db, error) {
	file, err := sqlitefile.Open(ctx, sqlitefile.Options{Path: path, Wait: lockWait, Schema: schema, Version: version, LocalOnly: true})
	if err != nil {
		return nil, err
	}
	return &db{file}, nil
}

func (d *db) close() error { return d.sql.Close() }

// in runs f in a transaction.
func (d *db) in(ctx context.Context, f func(t *tx) error) error {
	t, err := d.sql.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(&tx{t, ctx}); err != nil {
		_ = t.Rollback()
		return err
	}
	return t.Commit()
}

// A tx is one transaction.
type tx struct {
	*sql.Tx
	ctx context.Context
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	result, err := t.ExecContext(t.ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (t *tx) row(query string, args ...any) *sql.Row { return t.QueryRowContext(t.ctx, query, args...) }

func (t *tx) rows(query string, args ...any) (*sql.Rows, error) {
	return t.QueryContext(t.ctx, query, args...)
}
