package sqlitestore

import (
	"context"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/sqlitefile"
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

// Open opens the file of o, and creates it if it does not exist. Many processes may do so
// at once. An error means that the file cannot be used, and names it.
func Open(ctx context.Context, o Options) (*Turns, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	db, err := sqlitefile.Open(ctx, sqlitefile.Options{Path: o.Path, Wait: o.Wait, Schema: schema, Version: version})
	if err != nil {
		return nil, err
	}
	return &Turns{db: db, now: o.Now, max: sessionstate.DefaultMax}, nil
}
