package turnstore

import (
	"cmp"
	"context"
	"embed"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the table of turns.
func Schema() database.Schema { return database.Schema{Name: "turns", Files: files} }

// DefaultWait is the default of [Options].Wait. A statement takes well under a millisecond, and
// a new file a few synchronous writes.
const DefaultWait = time.Second

// Options are the options of [Open].
type Options struct {
	// Server is the server with the table, if several machines share it; nil for a file.
	Server *database.Server
	// Path is the path of the file. If it does not exist, Open creates it and its directory,
	// accessible only to their owner.
	Path string
	// Wait is how long to wait while another process has locked the file; 0 stands for
	// [DefaultWait].
	Wait time.Duration
	// Now is the clock; nil stands for that of the database.
	Now func() time.Time
}

// A DB stores the turns of all tenants. Several processes and goroutines may use a database at
// the same time, but each process must open it only once.
type DB struct {
	db  *database.DB
	max int // maximum number of keys per tenant after Sweep; 0 for no limit
}

// Open opens the database of o. Many processes may create a file at once. An error means that
// the file cannot be used, and names it. Open does not use the server yet.
func Open(ctx context.Context, o Options) (*DB, error) {
	o.Wait = cmp.Or(o.Wait, DefaultWait)
	db, err := database.Open(ctx, o.Server, database.FileOptions{Path: o.Path, Wait: o.Wait, Schema: Schema()})
	if err != nil {
		return nil, err
	}
	db.Clock = o.Now
	d := &DB{db: db}
	if !db.Shared() {
		d.max = sessionstate.DefaultMax
	}
	return d, nil
}

// Close closes the file. A process that ends without Close loses nothing.
func (d *DB) Close() error { return d.db.Close() }

// Of returns the turns of a tenant, "" if there is only one.
func (d *DB) Of(tenant string) *Turns { return &Turns{d, tenant} }
