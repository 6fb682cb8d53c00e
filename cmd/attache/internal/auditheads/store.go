// Package auditheads keeps the ends of audit files in the database that machines share, so that
// a file that was cut, made anew or lost is found by whoever verifies it.
//
// A [Writer] notes the end of the file that its process writes, beside the records: what the
// database does or does not do never delays one. There is a row for a file and hour.
package auditheads

import (
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

// keep is how long a head is kept, also of a host that is gone. Each note removes forgetAtOnce
// heads at most.
const keep, forgetAtOnce = 400 * 24 * time.Hour, 100

// A Store has the heads of all files.
type Store struct{ db *database.DB }

// Open returns the heads in a database.
func Open(db *database.DB) *Store { return &Store{db} }

// A Place is where a file is written: the host and the absolute path.
type Place struct{ Host, Path string }

// An Entry is a head and where it was noted.
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

// At returns the heads of the files that were written at a place.
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

// ofHour returns the head that was noted of a file in this hour, nil if there is none.
func (s *Store) ofHour(ctx context.Context, file chain.Digest, hour time.Time) (*Entry, error) {
	all, err := s.query(ctx, columns+`file = ?1 AND hour = ?2`, file.String(), hour.UnixNano())
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// errRace is returned when another process has noted a head meanwhile.
var errRace = errors.New("another process has noted one meanwhile")

// put notes a head in place of before, which the file has; nil for none.
func (s *Store) put(ctx context.Context, n Entry, before *Entry) error {
	if before == nil {
		before = &Entry{}
	}
	return s.db.In(ctx, database.Scope{}, func(t *database.Tx) error {
		if err := forget(t, n.At); err != nil {
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

// forget removes heads that are too old by the clock of the writer and by that of the database:
// no writer whose clock is wrong removes what others noted.
func forget(t *database.Tx, now time.Time) error {
	if shared := t.Now(); shared.Before(now) {
		now = shared
	}
	_, err := t.Exec(`DELETE FROM audit_heads WHERE tenant = '' AND hour <= ?1 AND (file, hour) IN
		(SELECT file, hour FROM audit_heads WHERE tenant = '' AND hour <= ?1 LIMIT ?2)`, now.Add(-keep).UnixNano(), forgetAtOnce)
	return err
}

func hourOf(t time.Time) time.Time { return t.Truncate(time.Hour) }
