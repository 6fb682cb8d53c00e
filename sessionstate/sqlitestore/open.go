package sqlitestore

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

	"github.com/attache-mcp/attache/sessionstate"
)

// version is the version of the schema, and the file's user_version. A change of the
// schema that an older attache would misread increments it.
const version = 1

// schema has no index beside the key: a sweep is rare, and reads ten thousand rows at most.
const schema = `CREATE TABLE IF NOT EXISTS turns (
	key        BLOB PRIMARY KEY,           -- SHA-256
	used       INTEGER NOT NULL,           -- nanoseconds since 1970, as the next
	held_until INTEGER NOT NULL DEFAULT 0,
	deferred   INTEGER NOT NULL DEFAULT 0, -- how often it was settled as Unseen
	closed     INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID, STRICT`

// ErrNewer is returned for a file that a newer version of the program has made. Open does
// not change it; the caller continues without it.
var ErrNewer = errors.New("the file is of a newer version")

// Open opens the file of o, and creates it if it does not exist. Many processes may do so
// at once. An error means that the file cannot be used, and names it.
func Open(ctx context.Context, o Options) (*Turns, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	t := &Turns{now: o.Now, max: sessionstate.DefaultMax}
	err := makeFile(o.Path)
	if err == nil {
		t.db, err = connect(ctx, o)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used: %w", o.Path, err)
	}
	return t, nil
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

// connect opens the file and creates the table if it is missing.
func connect(ctx context.Context, o Options) (*sql.DB, error) {
	db, err := sql.Open("sqlite", address(o.Path, o.Wait))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one process does not compete with itself for the lock
	if err := prepare(ctx, db, o.Wait); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// address returns the file as a URI for SQLite, with the settings of every connection. In
// WAL mode synchronous=NORMAL loses the last turns when the machine crashes, and never
// damages the file.
func address(path string, wait time.Duration) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/...
	}
	u := url.URL{Scheme: "file", Path: path, RawQuery: url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", wait.Milliseconds()),
		"synchronous(NORMAL)",
	}}.Encode()}
	return u.String()
}

// prepare sets WAL mode and creates the schema. While another process changes the mode,
// SQLite returns "busy" without waiting, so prepare tries again until wait is over. wait
// does not bound a slow disk.
func prepare(ctx context.Context, db *sql.DB, wait time.Duration) error {
	for until := time.Now().Add(wait); ; {
		err := tryPrepare(ctx, db)
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

func tryPrepare(ctx context.Context, db *sql.DB) error {
	var found int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil {
		return err
	}
	switch {
	case found == version:
		return nil
	case found > version:
		return fmt.Errorf("%w: it has version %d, and this program knows %d", ErrNewer, found, version)
	}
	// The mode stays in the file. Where the file system has no shared memory SQLite
	// keeps the old one, which is slower and as right.
	var mode string
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, fmt.Sprintf(`BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT`, schema, version))
	if err != nil {
		_, _ = db.ExecContext(ctx, `ROLLBACK`) // of what may not have begun
	}
	return err
}

// busy reports whether err says that another process has the file locked.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
