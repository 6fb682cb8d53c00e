package database

import (
	"context"
	"database/sql"
	"sync"
)

// statements are those of a file that run alone, prepared: SQLite needs longer to parse one
// than to run it. They are few, as their texts are constants. The zero value is empty.
type statements struct{ byText sync.Map } // to *sql.Stmt

// get returns a statement, and prepares it the first time.
func (s *statements) get(ctx context.Context, db *sql.DB, query string) (*sql.Stmt, error) {
	if found, ok := s.byText.Load(query); ok {
		return found.(*sql.Stmt), nil
	}
	stmt, err := db.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, ok := s.byText.LoadOrStore(query, stmt); ok { // another goroutine was first
		return first.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}
