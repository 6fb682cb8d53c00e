package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// migrationLock is the key of the advisory lock that a migration holds.
const migrationLock int64 = 0x61747461636865 // "attache"; without a type it does not compile for 32 bits

const (
	// migrationTime is the timeout of a migration.
	migrationTime = 10 * time.Minute
	// migrationWait is how long a migration waits for transactions in progress. New ones wait
	// for the migration meanwhile, so it gives up soon.
	migrationWait = "5s"
)

// Migrate migrates the tables of all schemas, or none of them, to the version of this program.
// It returns the versions from before. Only one of several concurrent callers migrates. Nothing else creates
// or changes tables on a server: only the role that owns them may.
func (s *Server) Migrate(ctx context.Context, schemas []Schema) (before []Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, migrationTime)
	defer cancel()
	t, err := s.sql.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Rollback() }() // does nothing after Commit
	tx := &Tx{ctx: ctx, db: &DB{server: s}, to: sqlStatements{t}}
	for _, statement := range []string{
		// Of the transaction, because through pgbouncer a session has no connection of its own.
		fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, migrationLock),
		// A step may take longer than the server's limit for a statement; migrationTime bounds it. A migration
		// whose process has stopped must not keep its locks.
		`SET LOCAL lock_timeout = '` + migrationWait + `'; SET LOCAL statement_timeout = 0; SET LOCAL client_min_messages = warning;
			SET LOCAL idle_in_transaction_session_timeout = ` + milliseconds(s.o.Timeouts.Answer),
		`CREATE TABLE IF NOT EXISTS attache_schema (name TEXT PRIMARY KEY, version BIGINT NOT NULL)`,
	} {
		if _, err := tx.Exec(statement); err != nil {
			return nil, err
		}
	}
	for _, schema := range schemas {
		v, err := tx.migrate(schema)
		if err != nil {
			return nil, migrationError(fmt.Errorf("the tables of %s: %w", schema.Name, err))
		}
		before = append(before, v)
	}
	return before, t.Commit()
}

// migrationError adds advice to err if other transactions used the tables for too long.
func migrationError(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" {
		return fmt.Errorf("%w: other transactions have used the tables for %s: end long transactions, and run it again", err, migrationWait)
	}
	return err
}

// migrate migrates the tables of one schema. The steps have no arguments, so each may have many statements.
func (t *Tx) migrate(schema Schema) (Version, error) {
	v, steps, err := t.schemaVersion(schema)
	if err != nil || v.Has >= v.Knows { // tables of a newer program stay: it may be in use on other machines
		return v, err
	}
	for _, step := range steps[v.Has:] {
		if _, err := t.to.exec(t.ctx, step, nil); err != nil {
			return v, err
		}
	}
	_, err = t.Exec(`INSERT INTO attache_schema (name, version) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET version = ?2`, v.Name, v.Knows)
	return v, err
}

// schemaVersion returns the version of the tables of schema on the server, and all steps to the
// version of this program.
func (t *Tx) schemaVersion(schema Schema) (v Version, steps []string, err error) {
	if steps, err = schema.steps(postgresEngine); err != nil {
		return v, nil, err
	}
	v = Version{Name: schema.Name, Knows: len(steps)}
	var exists bool
	if err := t.Row(`SELECT to_regclass('attache_schema') IS NOT NULL`).Scan(&exists); err != nil || !exists {
		return v, steps, err
	}
	err = t.Row(`SELECT version FROM attache_schema WHERE name = ?1`, schema.Name).Scan(&v.Has)
	if errors.Is(err, sql.ErrNoRows) { // a part of attache that the database does not have yet
		err = nil
	}
	if denied(err) {
		err = fmt.Errorf("%w: grant the role SELECT, INSERT, UPDATE and DELETE on attache's tables (docs/scale.md)", err)
	}
	return v, steps, err
}

// Versions returns the versions of the tables of schemas. Has is 0 for tables that do not exist.
func (s *Server) Versions(ctx context.Context, schemas []Schema) ([]Version, error) {
	return s.versions(ctx, &DB{server: s}, schemas)
}

func (s *Server) versions(ctx context.Context, db *DB, schemas []Schema) (all []Version, err error) {
	err = s.once(ctx, db, Scope{}, true, func(t *Tx) error {
		for _, schema := range schemas {
			v, _, err := t.schemaVersion(schema)
			if err != nil {
				return err
			}
			all = append(all, v)
		}
		return nil
	})
	return all, err
}

// Problems returns the reasons why attache should not use the server as it is, each with a remedy.
func (s *Server) Problems(ctx context.Context, schemas []Schema) (all []string, err error) {
	versions, err := s.Versions(ctx, schemas)
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if err := v.Err(); err != nil {
			all = append(all, err.Error())
		}
	}
	all = append(all, s.connectionProblems()...)
	err = s.once(ctx, &DB{server: s}, Scope{}, true, func(t *Tx) error {
		for _, look := range []func(*Tx) ([]string, error){roleProblems, settingProblems, tableProblems} {
			found, err := look(t)
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
		return nil
	})
	return all, err
}

// connectionProblems reports whether others on the network can read the connection or
// impersonate the server.
func (s *Server) connectionProblems() []string {
	for _, try := range s.attempts() {
		ip, err := netip.ParseAddr(try.Host)
		// Nobody else can read a socket or the loopback interface, so these need no certificate.
		local := strings.HasPrefix(try.Host, "/") || try.Host == "localhost" || err == nil && ip.IsLoopback()
		if !local && (try.TLSConfig == nil || try.TLSConfig.InsecureSkipVerify) {
			return []string{"the connection does not prove that the server is the right one: add sslmode=verify-full to store.url"}
		}
	}
	return nil
}

// roleProblems reports whether the role bypasses row level security.
func roleProblems(t *Tx) (all []string, err error) {
	var name string
	var super, bypass bool
	err = t.Row(`SELECT rolname, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&name, &super, &bypass)
	if super || bypass {
		all = append(all, fmt.Sprintf("the role %q passes row level security, so only attache's own statements keep tenants apart: use a role without SUPERUSER and BYPASSRLS", name))
	}
	return all, err
}

// settingProblems reports settings with which the server loses committed changes or refuses them.
func settingProblems(t *Tx) (all []string, err error) {
	for _, setting := range []struct{ name, want, why string }{
		{"default_transaction_read_only", "off", "the role may change nothing: set it to off for the role and the database"},
		{"in_hot_standby", "off", "the server is a replica, which takes no changes: name the primary in store.url"},
		{"fsync", "on", "what was written is lost when the machine fails: set it to on"},
		{"full_page_writes", "on", "the database can be damaged when the machine fails: set it to on"},
	} {
		var value string
		if err := t.Row(`SELECT current_setting(?1)`, setting.name).Scan(&value); err != nil {
			return nil, err
		}
		if value != setting.want {
			all = append(all, fmt.Sprintf("%s is %s: %s", setting.name, value, setting.why))
		}
	}
	return all, nil
}

// tableProblems reports tables that lack row level security or privileges of the role.
func tableProblems(t *Tx) ([]string, error) {
	read := func(row Rows) (problems []string, err error) {
		var name string
		var secured, may bool
		err = row.Scan(&name, &secured, &may)
		if !secured {
			problems = append(problems, fmt.Sprintf("the table %s has no row level security, which a migration has set: see docs/scale.md", name))
		}
		if !may {
			problems = append(problems, fmt.Sprintf("the role may not read and write the table %s: grant it SELECT, INSERT, UPDATE and DELETE", name))
		}
		return problems, err
	}
	all, err := Collect(t, read, `SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
			has_table_privilege(c.oid, 'SELECT') AND (c.relname = 'api_keys' -- which only attache key has to write
			OR has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
		WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('attache_schema')) ORDER BY c.relname`)
	return slices.Concat(all...), err
}
