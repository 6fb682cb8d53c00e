package databasetest

import (
	"strings"
	"testing"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// Plan returns the plan of a statement, one step a line.
func Plan(t testing.TB, db *database.DB, s database.Scope, statement string, args ...any) string {
	t.Helper()
	var steps []string
	err := db.View(t.Context(), s, func(tx *database.Tx) (err error) {
		steps, err = database.Collect(tx, func(row database.Rows) (step string, err error) { return step, row.Scan(&step) }, `EXPLAIN `+statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(statement, err)
	}
	return strings.Join(steps, "\n")
}

// ReadsNoTable fails the test if the plan of a statement on a server reads all rows of the table. In a test, the table
// needs many rows and up-to-date statistics.
func ReadsNoTable(t testing.TB, db *database.DB, s database.Scope, table, statement string, args ...any) {
	t.Helper()
	if plan := Plan(t, db, s, statement, args...); strings.Contains(plan, "Seq Scan on "+table) {
		t.Errorf("%s:\n%s", statement, plan)
	}
}
