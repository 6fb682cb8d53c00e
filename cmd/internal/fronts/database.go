package fronts

import (
	"context"
	"embed"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the tables of fronts and their sessions.
func Schema() database.Schema { return database.Schema{Name: "fronts", Files: files} }

// tenant is whose rows these are: a session's id is random, so one table serves all tenants.
const tenant = ""

// lockWait is how long a statement waits while another process has the file locked.
const lockWait = 5 * time.Second

// A tx is one transaction.
type tx struct {
	*database.Tx
	now int64
}

// in runs f in a transaction, which may run again. The change is on the disk when in returns,
// unless it is relaxed.
func (f *Front) in(ctx context.Context, relaxed bool, do func(t *tx) error) error {
	return f.inScope(ctx, database.Scope{Tenant: tenant, Relaxed: relaxed}, do)
}

func (f *Front) inScope(ctx context.Context, s database.Scope, do func(t *tx) error) error {
	return f.db.In(ctx, s, func(t *database.Tx) error {
		return do(&tx{t, t.Now().UnixNano()})
	})
}

// peers returns the fronts that a query finds.
func (t *tx) peers(query string, args ...any) ([]peer, error) {
	return database.Collect(t.Tx, func(row database.Rows) (peer, error) {
		p := peer{known: true}
		err := row.Scan(&p.id, &p.host, &p.address, &p.until)
		return p, err
	}, query, args...)
}
