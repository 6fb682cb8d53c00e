// Package sqlitefile opens SQLite files that several processes of a user share. Such a
// file is readable by its owner alone and in WAL mode, so readers do not wait for a writer.
//
// The package repairs nothing. A file that is damaged, of a newer version or locked for too
// long is an error, and the caller decides what it does without.
package sqlitefile

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

// ErrNewer is returned for a file that a newer version of the program has made. Open does
// not change it; the caller continues without it.
var ErrNewer = errors.New("the file is of a newer version")

// Options are the options of [Open].
type Options struct {
	// Path is the file. If it does not exist, Open creates it and its directory, for their
	// owner alone.
	Path string
	// Wait is how long a statement waits while another process has the file locked.
	Wait time.Duration
	// Schema creates the tables of a new file. Version is the file's user_version; a
	// change of the schema that an older program would misread increments it.
	Schema  string
	Version int
	// LocalOnly refuses a file on a network file system, where SQLite's locks do not hold.
	LocalOnly bool
}

// Open opens the file of o, and creates it if it does not exist. Many processes may do so
// at once. An error means that the file cannot be used, and names it. Transactions of the
// database take the file's write lock when they begin.
func Open(ctx context.Context, o Options) (*sql.DB, error) {
	err := makeFile(o.Path)
	if err == nil && o.LocalOnly {
		err = checkLocal(o.Path)
	}
	var db *sql.DB
	if err == nil {
		db, err = connect(ctx, o)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", o.Path, err)
	}
	return db, nil
}

// makeFile creates the file if it does not exist, readable by its owner alone: SQLite would
// create one that others can read. It does not open a file that exists, as closing it
// would release the locks that this process has on it (fcntl, POSIX).
func makeFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file") // to open a pipe may take for ever
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
		// Another process was first; or this is a link that leads nowhere, where SQLite
		// would make a file that others can read.
		_, err := os.Stat(path)
		return err
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// connect opens the file and creates the tables if they are missing.
func connect(ctx context.Context, o Options) (*sql.DB, error) {
	db, err := sql.Open("sqlite", address(o.Path, o.Wait))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one process does not compete with itself for the lock
	if err := prepare(ctx, db, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// address returns the file as a URI for SQLite, with the settings of every connection. In
// WAL mode synchronous=NORMAL loses the last changes when the machine crashes, and never
// damages the file.
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

// prepare sets WAL mode and creates the schema. While another process changes the mode,
// SQLite returns "busy" without waiting, so prepare tries again until o.Wait is over. It
// does not bound a slow disk.
func prepare(ctx context.Context, db *sql.DB, o Options) error {
	for until := time.Now().Add(o.Wait); ; {
		err := tryPrepare(ctx, db, o)
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

func tryPrepare(ctx context.Context, db *sql.DB, o Options) error {
	var found int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil {
		return err
	}
	switch {
	case found == o.Version:
		return nil
	case found > o.Version:
		return fmt.Errorf("%w: it has version %d, and this program knows %d", ErrNewer, found, o.Version)
	}
	// The mode stays in the file. Where the file system has no shared memory SQLite
	// keeps the old one, which is slower and as right.
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	return create(ctx, db, o)
}

// create creates the schema, unless another process has done so meanwhile.
func create(ctx context.Context, db *sql.DB, o Options) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	var found int
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil || found >= o.Version {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`%s; PRAGMA user_version = %d`, o.Schema, o.Version)); err != nil {
		return err
	}
	return tx.Commit()
}

// busy reports whether err says that another process has the file locked.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
