package database

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// An operator who gives the URL of the role that may only read keys learns which one to give.
func TestDenied(t *testing.T) {
	const remedy = "give in store.url the role that owns the tables (docs/scale.md)"
	denied := fmt.Errorf("making the key: %w", &pgconn.PgError{Severity: "ERROR", Code: "42501", Message: "permission denied for table api_keys"})
	if got := Denied(denied); !errors.Is(got, denied) || !strings.HasSuffix(got.Error(), remedy) {
		t.Errorf("got %v", got)
	}
	for _, err := range []error{nil, errors.New("other"), &pgconn.PgError{Code: "42P01"}} {
		if got := Denied(err); got != err {
			t.Errorf("%v: got %v", err, got)
		}
	}
}

// An operator whose migration gave up learns that others used the tables, and what to do.
func TestMigrationError(t *testing.T) {
	locked := fmt.Errorf("the tables of notes: %w", &pgconn.PgError{Severity: "ERROR", Code: "55P03", Message: "canceling statement due to lock timeout"})
	if got := migrationError(locked); !errors.Is(got, locked) || !strings.HasSuffix(got.Error(), "end long transactions, and run it again") {
		t.Errorf("got %v", got)
	}
	if other := errors.New("other"); migrationError(other) != other {
		t.Error("another error was changed")
	}
}
