package database

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

// tables returns a schema of one version.
func tables(ddl string) Schema {
	return Schema{Name: "test", Files: fstest.MapFS{"schema/1.sql": &fstest.MapFile{Data: []byte(ddl)}}}
}

// If many processes open a new file at the same time, one of them creates the tables.
func TestOpenAtOnce(t *testing.T) {
	for range 20 {
		o := FileOptions{Path: filepath.Join(t.TempDir(), "new", "x.db"), Wait: time.Minute, Schema: tables(`CREATE TABLE a (b TEXT)`)}
		var wait sync.WaitGroup
		for range 5 {
			wait.Go(func() {
				db, err := OpenFile(t.Context(), o)
				if err == nil {
					_, err = db.sql.Exec(`INSERT INTO a VALUES ('c')`)
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
