package teams_test

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/sessionstate"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

// child creates a session of parent whose first run has the lease of its creation.
func child(t *testing.T, db *store.Store, parent *store.Session, key string) store.RunRef {
	t.Helper()
	s, _, err := db.Create(t.Context(), parent.Ref, store.Child{Title: "c", Agent: "a", Message: "m", Key: key}, store.Limits{MaxChildren: 2, MaxSpawned: 2, MaxDepth: 1, MaxSessions: 2})
	check(t, err)
	return store.RunRef{Ref: s.Ref, Run: 1}
}

// While the machine sleeps, all leases end. A run whose supervisor then renews its lease continues, and
// another one is lost.
func TestMachineSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(slept.Load())) }
		db, err := store.Open(t.Context(), store.Options{Path: filepath.Join(t.TempDir(), "teams.db"), Now: now})
		check(t, err)
		t.Cleanup(func() { _ = db.Close() })
		parent := person(t, db, "me")
		alive, dead := child(t, db, parent, "alive"), child(t, db, parent, "dead")
		connectWith(t, db, "me", "unknown", nil, teams.Options{Now: now}).call("f")
		time.Sleep(time.Minute + 10*time.Second)
		if _, err := db.RenewRun(t.Context(), alive); err != nil {
			t.Fatal(err)
		}
		slept.Store(int64(time.Hour))
		for range 6 { // the supervisor's monotonic clock stood still meanwhile
			time.Sleep(store.RenewEvery)
			if v, err := db.RenewRun(t.Context(), alive); err != nil || v.Over {
				t.Fatalf("the run of a supervisor that is alive: over is %v, %v", v.Over, err)
			}
		}
		if v, err := db.RenewRun(t.Context(), dead); err != nil || !v.Over {
			t.Errorf("the run without a supervisor: over is %v, %v", v.Over, err)
		}
	})
}

// While the disk is full, no process opens the registry or renews a lease. A run whose supervisor then renews
// its lease continues.
func TestRegistryOpensLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		alive := child(t, db, person(t, db, "me"), "alive")
		full := time.Now().Add(store.Lease + 10*time.Second)
		connectWith(t, db, "me", "unknown", nil, teams.Options{Open: func() (*store.Store, error) {
			if time.Now().Before(full) {
				return nil, io.EOF
			}
			return db, nil
		}}).call("f")
		time.Sleep(time.Until(full) + 20*time.Second)
		if v, err := db.RenewRun(t.Context(), alive); err != nil || v.Over {
			t.Errorf("the run of a supervisor that is alive: over is %v, %v", v.Over, err)
		}
	})
}

// The clock of a process is an hour behind that of the database. Its session works while it makes calls,
// is renewed every 30 seconds, and is gone when the process ends.
func TestClockBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := openStore(t)
		peer := person(t, db, "peer")
		renewed := 0
		var log strings.Builder
		c := connectWith(t, db, "me", "unknown", nil, teams.Options{
			Now:    func() time.Time { return time.Now().Add(-time.Hour) },
			Resume: func(context.Context, *store.Store, *store.Session, *sessionstate.Context) { renewed++ },
			Log:    slog.New(slog.NewTextHandler(&log, nil)),
		})
		for range 20 {
			c.call("f")
			time.Sleep(5 * time.Second)
		}
		if s := otherThan(t, db, peer); s.State != store.Working {
			t.Errorf("the session is %s", s.State)
		}
		synctest.Wait()
		if renewed != 3 {
			t.Errorf("its lease was renewed %d times in 100 s", renewed)
		}
		if c.close(); log.Len() > 0 {
			t.Errorf("logged: %s", log.String())
		}
		if s := otherThan(t, db, peer); s.State != store.Gone {
			t.Errorf("after the end of its process the session is %s", s.State)
		}
	})
}
