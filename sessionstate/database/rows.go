package database

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// Rows are the rows that a statement returns, like [sql.Rows].
type Rows interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
	Close() error
}

// A Row is the first row that a statement returns. Call Scan, also if only Now is wanted: on a file it frees
// the connection.
type Row struct {
	rows Rows
	err  error
	now  time.Time
}

// Now returns the time at which a statement of [DB.Row] ran, like [Tx.Now].
func (r Row) Now() time.Time { return r.now }

// Scan copies the columns of the row to dest. It returns the error of the statement, or
// [sql.ErrNoRows].
func (r Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	return r.rows.Close()
}

// sqlStatements is a runner with database/sql, for a file, and for the migration of a server, which may take
// longer than [Timeouts] allow.
type sqlStatements struct {
	to interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
	}
}

func (s sqlStatements) exec(ctx context.Context, query string, args []any) (int64, error) {
	done, err := s.to.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

func (s sqlStatements) query(ctx context.Context, query string, args []any) (Rows, error) {
	return s.to.QueryContext(ctx, query, args...)
}

// A result is the answer of a server to a statement.
type result struct {
	tag    pgconn.CommandTag
	fields []pgconn.FieldDescription
	values [][][]byte // the raw values of each row
}

// readResult reads the result of the next statement of a batch.
func readResult(from pgx.BatchResults) (r result, err error) {
	rows, err := from.Query()
	if err != nil {
		return r, err
	}
	defer rows.Close()
	for rows.Next() {
		var row [][]byte
		for _, v := range rows.RawValues() {
			row = append(row, slices.Clone(v)) // nil, which stands for NULL, stays nil
		}
		r.values = append(r.values, row)
	}
	r.fields = slices.Clone(rows.FieldDescriptions())
	rows.Close()
	r.tag = rows.CommandTag()
	return r, rows.Err()
}

func (r result) rows() Rows { return &resultRows{result: r, types: pgtype.NewMap()} }

// resultRows implements [Rows] for a result.
type resultRows struct {
	result
	types *pgtype.Map
	next  int
}

// Next implements [Rows].
func (r *resultRows) Next() bool {
	r.next++
	return r.next <= len(r.values)
}

// Scan implements [Rows].
func (r *resultRows) Scan(dest ...any) error {
	if r.next < 1 || r.next > len(r.values) {
		return errors.New("there is no row: call Next before Scan")
	}
	return pgx.ScanRow(r.types, r.fields, r.values[r.next-1], dest...)
}

// Err implements [Rows]. A statement that fails has no result.
func (r *resultRows) Err() error { return nil }

// Close implements [Rows].
func (r *resultRows) Close() error { return nil }
