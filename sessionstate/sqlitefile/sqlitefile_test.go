package sqlitefile

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Of many that open a new file at the same time, one makes its tables.
func TestOpenAtOnce(t *testing.T) {
	for range 20 {
		o := Options{Path: filepath.Join(t.TempDir(), "new", "x.db"), Wait: time.Minute, Schema: `CREATE TABLE a (b TEXT)`, Version: 1}
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				db, err := Open(t.Context(), o)
				if err == nil {
					_, err = db.Exec(`INSERT INTO a VALUES ('c')`)
					err = errors.Join(err, db.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
}
