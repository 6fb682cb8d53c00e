package fronts

import (
	"embed"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the tables of fronts and their sessions.
func Schema() database.Schema { return database.Schema{Name: "fronts", Files: files} }

// tenant is the tenant of all rows: session ids are random, so tenants need no separate rows.
const tenant = ""

// lockWait is how long a statement waits while another process locks the file.
const lockWait = 5 * time.Second

// peers returns the fronts that a query selects.
func peers(t *database.Tx, query string, args ...any) ([]peer, error) {
	return database.Collect(t, func(row database.Rows) (peer, error) {
		p := peer{known: true}
		err := row.Scan(&p.id, &p.host, &p.address, &p.until)
		return p, err
	}, query, args...)
}
