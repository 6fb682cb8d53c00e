// Package auditheads stores the ends of audit files in the shared database, so that verifying a file
// detects that it was cut, replaced or lost.
//
// A [Writer] stores the end of the file that its process writes. It does so in the background, so the
// database never delays a record. There is one row for each file and hour.
package auditheads

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"time"

	"github.com/attache-mcp/attache/middleware/audit/chain"
	"github.com/attache-mcp/attache/sessionstate/database"
)

//go:embed schema/*.sql
var files embed.FS

// Schema returns the table of heads.
func Schema() database.Schema { return database.Schema{Name: "heads", Files: files} }

// retention is how long a head is stored, also that of a host that no longer exists. Each put deletes
// at most deleteLimit old heads.
const retention, deleteLimit = 400 * 24 * time.Hour, 100

// A Store stores the heads of all files.
type Store struct{ db *database.DB }

// Open returns the store in a database.
func Open(db *database.DB) *Store { return &Store{db} }

// A Place is the place of a file: its host and its absolute path.
type Place struct{ Host, Path string }

// An Entry is a head, with the place of its file and the time when it was stored.
type Entry struct {
	chain.Head
	Place
	At time.Time
}

const columns = `SELECT file, seq, digest, host, path, noted FROM audit_heads WHERE tenant = '' AND `

// OfFile returns the heads of a file, by the digest of its first line.
func (s *Store) OfFile(ctx context.Context, file chain.Digest) ([]Entry, error) {
	return s.query(ctx, columns+`file = ?1 ORDER BY hour`, file.String())
}

// At returns the heads of all files that were written at a place.
func (s *Store) At(ctx context.Context, p Place) ([]Entry, error) {
	return s.query(ctx, columns+`host = ?1 AND path = ?2 ORDER BY hour`, p.Host, p.Path)
}

func (s *Store) query(ctx context.Context, query string, args ...any) (all []Entry, err error) {
	err = s.db.View(ctx, database.Scope{}, func(t *database.Tx) error {
		all, err = database.Collect(t, readEntry, query, args...)
		return err
	})
	return all, err
}

func readEntry(row database.Rows) (n Entry, err error) {
	var file, digest string
	var seq, noted int64
	if err := row.Scan(&file, &seq, &digest, &n.Host, &n.Path, &noted); err != nil {
		return n, err
	}
	n.Seq, n.At = uint64(seq), time.Unix(0, noted).UTC()
	if n.File, err = chain.ParseDigest(file); err == nil {
		n.Digest, err = chain.ParseDigest(digest)
	}
	return n, err
}

// ofHour returns the head of a file that was stored in the given hour, or nil.
func (s *Store) ofHour(ctx context.Context, file chain.Digest, hour time.Time) (*Entry, error) {
	all, err := s.query(ctx, columns+`file = ?1 AND hour = ?2`, file.String(), hour.UnixNano())
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// errRace is returned if another process has stored a head in the meantime.
var errRace = errors.New("another process has stored a head in the meantime")

// put stores a head and replaces before, the file's head of the same hour, or nil.
func (s *Store) put(ctx context.Context, n Entry, before *Entry) error {
	before = cmp.Or(before, &Entry{})
	return s.db.In(ctx, database.Scope{}, func(t *database.Tx) error {
		if err := deleteOld(t, n.At); err != nil {
			return err
		}
		changed, err := t.Exec(`INSERT INTO audit_heads (tenant, file, hour, host, path, seq, digest, noted) VALUES ('', ?1, ?2, ?3, ?4, ?5, ?6, ?7)
			ON CONFLICT (tenant, file, hour) DO UPDATE SET seq = ?5, digest = ?6, noted = ?7 WHERE audit_heads.seq = ?8 AND audit_heads.digest = ?9`,
			n.File.String(), hourOf(n.At).UnixNano(), n.Host, n.Path, int64(n.Seq), n.Digest.String(), n.At.UnixNano(), int64(before.Seq), before.Digest.String())
		if err == nil && changed == 0 {
			err = errRace
		}
		return err
	})
}

// deleteOld deletes heads that are too old by both the writer's clock and the database's, so that a
// writer with a wrong clock does not delete the heads of others.
func deleteOld(t *database.Tx, now time.Time) error {
	if shared := t.Now(); shared.Before(now) {
		now = shared
	}
	_, err := t.Exec(deleteOldest, now.Add(-retention).UnixNano(), deleteLimit)
	return err
}

// deleteOldest searches in the order of an index: PostgreSQL would read the whole table if its statistics promise many
// rows.
const deleteOldest = `DELETE FROM audit_heads WHERE tenant = '' AND hour <= ?1 AND (file, hour) IN
	(SELECT file, hour FROM audit_heads WHERE tenant = '' AND hour <= ?1 ORDER BY hour LIMIT ?2)`

func hourOf(t time.Time) time.Time { return t.Truncate(time.Hour) }
