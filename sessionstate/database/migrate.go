package database

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// migrationLock is the key of the advisory lock that a migration holds.
const migrationLock = 0x61747461636865 // "attache"

const (
	// migrationTime is how long a migration may take.
	migrationTime = 10 * time.Minute
	// migrationWait is how long it waits for the transactions of others. Theirs wait for it
	// meanwhile, so it gives up soon.
	migrationWait = "5s"
)

// Migrate brings the tables of the parts to the version that this program knows, all of them or
// none, and returns the versions there were. Of several callers one does it.
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
		fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, migrationLock),
		`SET LOCAL lock_timeout = '` + migrationWait + `'; SET LOCAL statement_timeout = 0; SET LOCAL client_min_messages = warning`,
		`CREATE TABLE IF NOT EXISTS attache_schema (name TEXT PRIMARY KEY, version BIGINT NOT NULL)`,
	} {
		if _, err := tx.Exec(statement); err != nil {
			return nil, err
		}
	}
	for _, schema := range schemas {
		v, err := tx.migrate(schema)
		if err != nil {
			return nil, fmt.Errorf("the tables of %s: %w", schema.Name, err)
		}
		before = append(before, v)
	}
	return before, t.Commit()
}

func (t *Tx) migrate(schema Schema) (Version, error) {
	steps, err := schema.steps(postgresEngine)
	if err != nil {
		return Version{}, err
	}
	v := Version{Name: schema.Name, Knows: len(steps)}
	if v.Has, err = t.schemaVersion(schema.Name); err != nil || v.Has >= v.Knows {
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

// Versions returns the versions of the tables of the parts.
func (s *Server) Versions(ctx context.Context, schemas []Schema) (all []Version, err error) {
	err = s.once(ctx, &DB{server: s}, Scope{}, true, func(t *Tx) error {
		for _, schema := range schemas {
			steps, err := schema.steps(postgresEngine)
			if err != nil {
				return err
			}
			has, err := t.schemaVersion(schema.Name)
			if err != nil {
				return err
			}
			all = append(all, Version{Name: schema.Name, Has: has, Knows: len(steps)})
		}
		return nil
	})
	return all, err
}

// Problems returns what is wrong with the server for attache's use, each with what to do.
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

// connectionProblems says whether others on the network can read what is sent, or answer in the
// place of the server.
func (s *Server) connectionProblems() []string {
	host := s.config.Host
	ip, err := netip.ParseAddr(host)
	local := strings.HasPrefix(host, "/") || host == "localhost" || err == nil && ip.IsLoopback()
	if local || s.config.TLSConfig != nil && !s.config.TLSConfig.InsecureSkipVerify {
		return nil
	}
	return []string{"the connection does not prove that the server is the right one: add sslmode=verify-full to store.url"}
}

// roleProblems says whether row level security holds for the role.
func roleProblems(t *Tx) (all []string, err error) {
	var name string
	var super, bypass bool
	err = t.Row(`SELECT rolname, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&name, &super, &bypass)
	if super || bypass {
		all = append(all, fmt.Sprintf("the role %q passes row level security, so only attache's own statements keep tenants apart: use a role without SUPERUSER and BYPASSRLS", name))
	}
	return all, err
}

// settingProblems says which settings of the server lose what was acknowledged, or refuse changes.
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

// tableProblems says which tables lack row level security or rights.
func tableProblems(t *Tx) (all []string, err error) {
	rows, err := t.Rows(`SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
			has_table_privilege(c.oid, 'SELECT') AND (c.relname = 'api_keys' -- which only attache key has to write
			OR has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
		WHERE c.relkind = 'r' AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = to_regclass('attache_schema')) ORDER BY c.relname`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var secured, may bool
		if err := rows.Scan(&name, &secured, &may); err != nil {
			return nil, err
		}
		if !secured {
			all = append(all, fmt.Sprintf("the table %s has no row level security, which a migration has set: see docs/scale.md", name))
		}
		if !may {
			all = append(all, fmt.Sprintf("the role may not read and write the table %s: grant it SELECT, INSERT, UPDATE and DELETE", name))
		}
	}
	return all, rows.Err()
}
