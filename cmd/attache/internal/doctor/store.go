package doctor

import (
	"context"
	"log/slog"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
)

// storeTime is the timeout for the database.
const storeTime = 15 * time.Second

// store checks the database that several machines share, as "attache store check" does.
func (d *Doctor) store(ctx context.Context) {
	d.check = "store"
	db, err := assembly.OpenDatabase(d.Process, d.Settings, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		d.problem("correct store.url", "%v", err)
		return
	}
	if db == nil {
		return
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	const again = `"attache store check" checks it again`
	versions, err := db.Versions(ctx, assembly.Schemas())
	for _, v := range versions {
		if err := v.Err(); err != nil {
			d.problem(again, "%s: %v", db.Address(), err)
			return // the other tables are as old
		}
	}
	var all []string
	if err == nil {
		all, err = db.Problems(ctx, assembly.Schemas())
	}
	for _, text := range all {
		d.warn(again, "%s", text)
	}
	switch {
	case err != nil:
		d.problem("start it, or correct store.url", "%s cannot be used: %v", db.Address(), err)
	case len(all) == 0:
		d.ok("%s has the tables, role and settings that attache needs", db.Address())
	}
}
