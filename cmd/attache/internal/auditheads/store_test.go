package auditheads

import (
	"os"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// Storing a head does not read the table, even if many heads are too old.
func TestOldHeadsAreSearchedInOrder(t *testing.T) {
	t.Parallel()
	db := databasetest.Connect(t, databasetest.Migrate(t, pgtest.New(t, os.Getenv).Database(), Schema())).Open(Schema())
	_, err := db.Exec(t.Context(), database.Scope{}, `INSERT INTO audit_heads (tenant, file, hour, host, path, seq, digest, noted)
		SELECT '', n, n, '', '', 0, '', 0 FROM (SELECT n * 7919 % 50000 AS n FROM generate_series(1, 50000) n) rows`)
	testkit.Check(t, err)
	_, err = db.Exec(t.Context(), database.Scope{}, `ANALYZE audit_heads`)
	testkit.Check(t, err)
	databasetest.ReadsNoTable(t, db, database.Scope{}, "audit_heads", deleteOldest, 25000, deleteLimit)
}
