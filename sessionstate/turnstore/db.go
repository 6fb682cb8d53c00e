package turnstore

import (
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

// DefaultWait is how long a method waits while another process has the file locked. One
// statement takes well under a millisecond; a new file takes a few synchronous writes.
const DefaultWait = time.Second

// Options are the options of [Open].
type Options struct {
	// Server has the table, where several machines share it; nil for a file.
	Server *database.Server
	// Path is the file. If it does not exist, Open creates it and its directory, for their
	// owner alone.
	Path string
	// Wait is how long to wait for a lock; 0 stands for [DefaultWait].
	Wait time.Duration
	// Now is the clock; nil stands for the one of the database.
	Now func() time.Time
}

// A DB keeps the turns of all tenants. Several processes, and several goroutines of each,
// may use one database at once; one process opens it once.
type DB struct {
	db  *database.DB
	max int // how many keys of a tenant Sweep leaves; 0 for all
}

// Open opens the database of o. Many processes may create a file at once. An error means that
// the file cannot be used, and names it. A server is not asked yet.
func Open(ctx context.Context, o Options) (*DB, error) {
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
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

// Of returns the turns of a tenant, "" where there is one tenant.
func (d *DB) Of(tenant string) *Turns { return &Turns{d, tenant} }
