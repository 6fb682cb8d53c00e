package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// FileOptions are the options of [OpenFile].
type FileOptions struct {
	// Path is the path of the file. If it does not exist, OpenFile creates it and its
	// directory, accessible only to their owner.
	Path string
	// Wait is how long a statement waits while another process has locked the file.
	Wait time.Duration
	// Schema is the only schema in the file.
	Schema Schema
	// LocalOnly refuses a file on a network file system, where SQLite's locks do not work.
	LocalOnly bool
	// Trace, if not nil, is called with each statement before it runs.
	Trace func(statement string)
}

// Open opens the tables of o.Schema: on the server, or in the file of o if server is nil.
func Open(ctx context.Context, server *Server, o FileOptions) (*DB, error) {
	if server != nil {
		return server.Open(o.Schema), nil
	}
	return OpenFile(ctx, o)
}

// OpenFile opens the file of o, which several processes of a user may share. It creates the
// file if it does not exist, and migrates its tables to the version of this program. Many
// processes may do so at once, but each process must open a file only once. The file is
// readable by its owner alone and in WAL mode, so readers do not wait for a writer. An error
// means that the file cannot be used, and names it.
func OpenFile(ctx context.Context, o FileOptions) (*DB, error) {
	err := makeFile(o.Path)
	if err == nil && o.LocalOnly {
		err = checkLocal(o.Path)
	}
	var db *DB
	if err == nil {
		db, err = connectFile(ctx, o)
	}
	if err != nil {
		return nil, unusable(o.Path, err)
	}
	return db, nil
}

// unusable returns err with the name of the file, and says what to do if that is known.
func unusable(path string, err error) error {
	var what string
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		what = remedy(e.Code())
	}
	return fmt.Errorf("%s cannot be used: %w%s", path, err, what)
}

// remedy returns what to do about an error of SQLite, "" if that is not known.
func remedy(code int) string {
	switch {
	case code == sqlite3.SQLITE_IOERR_SHMMAP: // such as FUSE with direct_io: WAL mode needs a mapping that processes share
		return ": processes cannot share memory on its file system: set XDG_STATE_HOME to a directory on another one"
	case code&0xff == sqlite3.SQLITE_NOTADB, code&0xff == sqlite3.SQLITE_CORRUPT:
		return ": end all attaches and move the file away; attache makes a new one"
	}
	return ""
}

// named returns err with the name of the file if SQLite refused a statement of the opened
// file: a damaged page is not read before a statement needs it.
func (db *DB) named(err error) error {
	if _, ok := errors.AsType[*sqlite.Error](err); !ok {
		return err
	}
	return unusable(db.path, err)
}

// makeFile creates the file if it does not exist, readable by its owner alone: SQLite would
// make it readable by others. It does not open an existing file, because closing it would
// release the locks that this process has on it (fcntl, POSIX).
func makeFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file") // opening a pipe may block for ever
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(path, 0o600)
	default:
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		// Another process was faster, or this is a dangling link, whose target SQLite would
		// create so that others can read it.
		_, err := os.Stat(path)
		return err
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// connectFile opens the file and creates missing tables.
func connectFile(ctx context.Context, o FileOptions) (*DB, error) {
	steps, err := o.Schema.steps(sqliteEngine)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", address(o.Path, o.Wait))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one process does not compete with itself for the lock; and data_version is per connection
	err = initialize(ctx, db, o, steps)
	opened := &DB{sql: db, path: o.Path, schema: o.Schema, trace: o.Trace}
	if err == nil {
		opened.version, err = db.PrepareContext(ctx, `PRAGMA data_version`)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return opened, nil
}

// address returns the URI of the file for SQLite, with the settings of every connection. In WAL
// mode synchronous=NORMAL may lose the last changes when the machine crashes, but never damages
// the file. Transactions take the write lock when they begin: one that reads first, and then finds that another
// has written, could only fail.
func address(path string, wait time.Duration) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/...
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_txlock": {"immediate"}, "_pragma": {
		fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()),
		"synchronous(NORMAL)",
	}}.Encode()}
	return u.String()
}

// initialize sets WAL mode and creates the tables. While another process changes the mode,
// SQLite returns "busy" without waiting, so initialize tries again for o.Wait. A slow disk may
// make it take longer.
func initialize(ctx context.Context, db *sql.DB, o FileOptions, steps []string) error {
	for until := time.Now().Add(o.Wait); ; {
		err := tryInitialize(ctx, db, o.Schema, steps)
		if !busy(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func tryInitialize(ctx context.Context, db *sql.DB, s Schema, steps []string) error {
	var found int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil {
		return err
	}
	if found >= len(steps) { // nothing is written, so a writer is not waited for
		return Version{s.Name, found, len(steps)}.Err()
	}
	// The mode is stored in the file, and cannot be changed in a transaction.
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	return migrateFile(ctx, db, steps)
}

// migrateFile creates the tables, unless another process has done so meanwhile.
func migrateFile(ctx context.Context, db *sql.DB, steps []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	var found int
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil || found >= len(steps) {
		return err
	}
	for _, step := range steps[found:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, len(steps))); err != nil {
		return err
	}
	return tx.Commit()
}

// busy reports whether err means that another process has locked the file.
func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
