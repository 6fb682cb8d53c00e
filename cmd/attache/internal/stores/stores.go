// Package stores implements the command "attache store" for the database that several machines
// share.
package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/sessionstate/database"
)

// filesNote is printed if no database is configured.
const filesNote = "the state is in files of this user, which attache makes and changes itself; set store.url for a database that several machines share (docs/scale.md)"

// A Command prints to out what it does with a database.
type Command func(ctx context.Context, out io.Writer, db *database.Server) error

// Run runs do with the database of the settings. If there is none, it prints that.
func Run(ctx context.Context, p cli.Process, s *config.Settings, do Command) error {
	db, err := assembly.OpenDatabase(p, s, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		return cli.Usagef("%v", err)
	}
	if db == nil {
		fmt.Fprintln(p.Stdout, filesNote)
		return nil
	}
	defer db.Close()
	return do(ctx, p.Stdout, db)
}

// Migrate migrates the tables of the database to the version that this program supports.
func Migrate(ctx context.Context, out io.Writer, db *database.Server) error {
	before, err := db.Migrate(ctx, assembly.Schemas())
	if err != nil {
		return fmt.Errorf("%s was not changed: %w", db.Address(), database.Denied(err))
	}
	fmt.Fprintln(out, db.Address())
	var all []error
	for _, v := range before {
		if v.Has >= v.Knows {
			fmt.Fprintf(out, "  %-10s version %d, as before\n", v.Name, v.Has)
			all = append(all, v.Err())
			continue
		}
		fmt.Fprintf(out, "  %-10s version %d, was %d\n", v.Name, v.Knows, v.Has)
	}
	return errors.Join(all...)
}

// Status prints the versions of the tables.
func Status(ctx context.Context, out io.Writer, db *database.Server) error {
	start := time.Now()
	versions, err := db.Versions(ctx, assembly.Schemas())
	if err != nil {
		return fmt.Errorf("%s cannot be used: %w", db.Address(), err)
	}
	fmt.Fprintf(out, "%s, answered in %s\n", db.Address(), time.Since(start).Round(100*time.Microsecond))
	var all []error
	for _, v := range versions {
		fmt.Fprintf(out, "  %-10s version %d, this attache knows %d\n", v.Name, v.Has, v.Knows)
		all = append(all, v.Err())
	}
	return errors.Join(all...)
}

// Check prints the problems of the database, and returns an error if there are any.
func Check(ctx context.Context, out io.Writer, db *database.Server) error {
	problems, err := db.Problems(ctx, assembly.Schemas())
	if err != nil {
		return fmt.Errorf("%s cannot be used: %w", db.Address(), err)
	}
	fmt.Fprintln(out, db.Address())
	for _, problem := range problems {
		fmt.Fprintln(out, "  warning  "+problem)
	}
	if len(problems) > 0 {
		return cli.ExitError(cli.ExitFailure)
	}
	fmt.Fprintln(out, "  ok       the tables, the role and the settings of the server are as attache needs them")
	return nil
}
