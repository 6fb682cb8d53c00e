package ratestore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/database/databasetest"
	"github.com/attache-mcp/attache/sessionstate/database/pgtest"
)

// A clock is the clock of all processes in a test.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// suite has the tests for both engines. open returns the store of another process.
var suite = []struct {
	name string
	test func(t *testing.T, c *clock, open func() *Store)
}{
	{"tokens are lent and returned", testLend},
	{"buckets are apart", testApart},
	{"processes are counted", testProcesses},
	{"several ask at once", testAtOnce},
	{"rows of full buckets are removed", testSweep},
	{"the limit over an hour", testHour},
}

func TestOnSQLite(t *testing.T) {
	for _, test := range suite {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "rates.db")
			c := newClock()
			test.test(t, c, func() *Store {
				db, err := database.OpenFile(t.Context(), database.FileOptions{Path: path, Wait: time.Minute, Schema: Schema()})
				testkit.Check(t, err)
				t.Cleanup(func() { _ = db.Close() })
				db.Clock = c.now
				return New(db)
			})
		})
	}
}

func TestOnPostgreSQL(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	made := databasetest.Migrate(t, cluster.Database(), Schema())
	for _, test := range suite {
		t.Run(test.name, func(t *testing.T) {
			url := cluster.Copy(made)
			c := newClock()
			test.test(t, c, func() *Store {
				db := databasetest.Connect(t, url).Open(Schema())
				db.Clock = c.now
				return New(db)
			})
		})
	}
	t.Run("a row that is used while a sweep waits for it stays", func(t *testing.T) {
		s := New(databasetest.Connect(t, cluster.Copy(made)).Open(Schema()))
		c := newClock()
		s.db.Clock = c.now
		borrow(t, s, bucket, sessionstate.Demand{Want: 1})
		c.pass(time.Hour)
		swept := make(chan error, 1)
		err := s.db.In(t.Context(), database.Scope{Tenant: bucket.Tenant}, func(tx *database.Tx) error {
			_, err := lend(tx, bucket, sessionstate.Demand{Want: 10}, tx.Now())
			go func() { swept <- s.sweep(context.WithoutCancel(t.Context())) }()
			for waits := false; err == nil && !waits && len(swept) == 0; {
				err = tx.Row(`SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted)`).Scan(&waits)
			}
			return err
		})
		testkit.Check(t, errors.Join(err, <-swept))
		if loan := borrow(t, s, bucket, sessionstate.Demand{Want: 1}); loan.Tokens != 0 {
			t.Errorf("%d tokens are lent twice", loan.Tokens)
		}
	})
	t.Run("a sweep does not read the table", func(t *testing.T) {
		db, all := databasetest.Connect(t, cluster.Copy(made)).Open(Schema()), database.Scope{AllTenants: true}
		_, err := db.Exec(t.Context(), all, `INSERT INTO rate_buckets (tenant, bucket, full_at, minute, processes, earlier)
			SELECT '', n, n, 0, 0, 0 FROM (SELECT n * 7919 % 50000 AS n FROM generate_series(1, 50000) n) rows`)
		testkit.Check(t, err)
		_, err = db.Exec(t.Context(), all, `ANALYZE rate_buckets`)
		testkit.Check(t, err)
		databasetest.ReadsNoTable(t, db, all, "rate_buckets", deleteFull, 25000, sweepBatch)
	})
	t.Run("a tenant sees its own", func(t *testing.T) {
		server := databasetest.Connect(t, cluster.Copy(made))
		s := New(server.Open(Schema()))
		borrow(t, s, bucket, sessionstate.Demand{Want: 3})
		for tenant, want := range map[string]int{"acme": 1, "other": 0} {
			var n int
			err := s.db.View(t.Context(), database.Scope{Tenant: tenant}, func(tx *database.Tx) error {
				return tx.Row(`SELECT count(*) FROM rate_buckets`).Scan(&n)
			})
			if err != nil || n != want {
				t.Errorf("%s sees %d rows, %v; want %d", tenant, n, err, want)
			}
		}
	})
}

// If the database is unavailable, the error is ErrDown. If it lacks the table, the error says what
// to do.
func TestAway(t *testing.T) {
	t.Parallel()
	cluster := pgtest.New(t, os.Getenv)
	s := New(databasetest.Connect(t, cluster.Database()).Open(Schema()))
	if _, err := s.Lend(t.Context(), bucket, sessionstate.Demand{Want: 1}); !errors.Is(err, database.ErrVersion) {
		t.Errorf("without the table: %v", err)
	}
	s = New(databasetest.Connect(t, databasetest.Migrate(t, cluster.Database(), Schema())).Open(Schema()))
	borrow(t, s, bucket, sessionstate.Demand{Want: 1})
	cluster.Kill()
	if _, err := s.Lend(t.Context(), bucket, sessionstate.Demand{Want: 1}); !errors.Is(err, database.ErrDown) {
		t.Errorf("while the database is unavailable: %v", err)
	}
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// bucket is 60/minute with a burst of 10.
var bucket = sessionstate.Bucket{Tenant: "acme", Name: "b", Every: time.Second, Burst: 10}

func borrow(t *testing.T, s *Store, b sessionstate.Bucket, d sessionstate.Demand) sessionstate.Loan {
	t.Helper()
	loan, err := s.Lend(t.Context(), b, d)
	testkit.Check(t, err)
	return loan
}

func testLend(t *testing.T, c *clock, open func() *Store) {
	one, two := open(), open()
	for _, step := range []struct {
		what       string
		s          *Store
		want, back int
		wait       time.Duration // before
		tokens     int
		full       time.Duration
	}{
		{"a full bucket", one, 4, 0, 0, 4, 4 * time.Second},
		{"the remaining tokens", two, 9, 0, 0, 6, 10 * time.Second},
		{"nothing", one, 1, 0, 0, 0, 10 * time.Second},
		{"half a token", one, 1, 0, time.Second / 2, 0, 9500 * time.Millisecond},
		{"a token", one, 1, 0, time.Second / 2, 1, 10 * time.Second},
		{"only a return", two, 0, 3, 0, 0, 7 * time.Second},
		{"the returned tokens", one, 9, 0, 0, 3, 10 * time.Second},
		{"after a day", one, 0, 0, 24 * time.Hour, 0, 0},
		{"a return into a full bucket", two, 20, 5, 0, 10, 10 * time.Second},
		{"a clock set back", one, 1, 0, -time.Hour, 0, 10 * time.Second},
		{"and a second later", one, 1, 0, time.Second, 1, 10 * time.Second},
		{"a transaction that began earlier and waited", two, 1, 0, -time.Second, 0, 11 * time.Second},
		{"after it", one, 1, 0, time.Second, 0, 10 * time.Second},
	} {
		c.pass(step.wait)
		loan := borrow(t, step.s, bucket, sessionstate.Demand{Want: step.want, Back: step.back})
		if loan.Tokens != step.tokens || loan.Full != step.full {
			t.Errorf("%s: %d tokens, full in %v; want %d, %v", step.what, loan.Tokens, loan.Full, step.tokens, step.full)
		}
	}
}

// No time that another program has put into a row empties the bucket for longer than it takes to fill.
func TestForeignTimes(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for fullAt, want := range map[int64]time.Duration{math.MinInt64: time.Second, math.MaxInt64: 10 * time.Second} {
		r := row{fullAt: fullAt}
		if loan := r.lend(bucket, sessionstate.Demand{Want: 1, Back: 1}, now); loan.Tokens != 1 || loan.Full != want {
			t.Errorf("full at %d: %+v", fullAt, loan)
		}
	}
}

func testApart(t *testing.T, _ *clock, open func() *Store) {
	s := open()
	name, tenant, large := bucket, bucket, bucket
	name.Name, tenant.Tenant = "c", "other"
	large.Name, large.Every, large.Burst = "large", 1<<62, 1_000_000
	for _, b := range []sessionstate.Bucket{bucket, name, tenant} {
		if loan := borrow(t, s, b, sessionstate.Demand{Want: 20}); loan.Tokens != 10 {
			t.Errorf("%v lends %d tokens, want 10", b, loan.Tokens)
		}
	}
	borrow(t, s, tenant, sessionstate.Demand{Back: 10})
	if loan := borrow(t, s, bucket, sessionstate.Demand{Want: 1}); loan.Tokens != 0 {
		t.Errorf("%d tokens that another tenant has returned are lent", loan.Tokens)
	}
	for _, want := range []int{1, 0} { // a rate of one in a century
		if loan := borrow(t, s, large, sessionstate.Demand{Want: 2}); loan.Tokens != want {
			t.Errorf("%v lends %d tokens, want %d", large, loan.Tokens, want)
		}
	}
}

func testProcesses(t *testing.T, c *clock, open func() *Store) {
	type process struct {
		s       *Store
		counted int64
	}
	all := []*process{{s: open()}, {s: open()}, {s: open()}}
	ask := func(p *process, want int) {
		t.Helper()
		loan := borrow(t, p.s, bucket, sessionstate.Demand{Want: 1, Counted: p.counted})
		if p.counted = loan.Counted; loan.Processes != want {
			t.Errorf("%d processes, want %d", loan.Processes, want)
		}
	}
	ask(all[0], 1)
	ask(all[1], 2)
	ask(all[0], 2)
	ask(all[2], 3)
	c.pass(time.Minute)
	ask(all[0], 3) // the others borrowed in the previous minute
	ask(all[1], 3)
	c.pass(time.Minute)
	ask(all[0], 2)
	c.pass(time.Hour)
	ask(all[0], 1)
}

func testAtOnce(t *testing.T, _ *clock, open func() *Store) {
	var wait sync.WaitGroup
	lent := make(chan int, 100)
	for range 5 {
		s := open()
		wait.Go(func() {
			for range 10 {
				loan, err := s.Lend(t.Context(), bucket, sessionstate.Demand{Want: 1})
				if err != nil {
					t.Error(err)
				}
				lent <- loan.Tokens
			}
		})
	}
	wait.Wait()
	close(lent)
	total := 0
	for n := range lent {
		total += n
	}
	if total != bucket.Burst {
		t.Errorf("%d tokens were lent, want %d", total, bucket.Burst)
	}
}

func testSweep(t *testing.T, c *clock, open func() *Store) {
	s := open()
	// More rows than a sweep removes, which are not full.
	err := s.db.In(t.Context(), database.Scope{AllTenants: true}, func(tx *database.Tx) error {
		_, err := tx.Exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= ?2)
			INSERT INTO rate_buckets (tenant, bucket, full_at, minute, processes, earlier) SELECT 'never full', 'n' || i, ?1, 0, 0, 0 FROM n`,
			c.now().Add(365*24*time.Hour).UnixNano(), sweepBatch)
		return err
	})
	testkit.Check(t, err)
	for i := range 5 {
		b := bucket
		b.Tenant, b.Name = fmt.Sprint("tenant ", i%2), fmt.Sprint(i)
		borrow(t, s, b, sessionstate.Demand{Want: 2 * i})
	}
	for _, step := range []struct {
		wait time.Duration
		want int
	}{{0, 5}, {2*time.Minute + 3*time.Second, 3}, {time.Hour, 0}} {
		c.pass(step.wait)
		testkit.Check(t, s.sweep(t.Context()))
		var n int
		err := s.db.View(t.Context(), database.Scope{AllTenants: true}, func(tx *database.Tx) error {
			return tx.Row(`SELECT count(*) FROM rate_buckets WHERE tenant <> 'never full'`).Scan(&n)
		})
		if err != nil || n != step.want {
			t.Errorf("after %v: %d rows, %v; want %d", step.wait, n, err, step.want)
		}
	}
}

// Loans remove old rows, so nothing else has to.
func TestLendSweeps(t *testing.T) {
	db, err := database.OpenFile(t.Context(), database.FileOptions{Path: filepath.Join(t.TempDir(), "rates.db"), Wait: time.Minute, Schema: Schema()})
	testkit.Check(t, err)
	defer db.Close()
	c, s, old := newClock(), New(db), bucket
	db.Clock, old.Name = c.now, "old"
	borrow(t, s, old, sessionstate.Demand{Want: 1})
	c.pass(time.Hour)
	for range 30 * sweepEvery { // not to sweep then has a probability of e^-30
		borrow(t, s, bucket, sessionstate.Demand{Want: 1})
		rows := 0
		err := db.View(t.Context(), database.Scope{}, func(tx *database.Tx) error { return tx.Row(`SELECT count(*) FROM rate_buckets`).Scan(&rows) })
		testkit.Check(t, err)
		if rows == 1 {
			return
		}
	}
	t.Error("the old row is left")
}

// In an hour in which processes borrow, return tokens and die, no period has more tokens lent and
// not returned than the bucket holds and gains.
func testHour(t *testing.T, c *clock, open func() *Store) {
	random := rand.New(rand.NewPCG(13, 8))
	type event struct {
		at time.Time
		n  int
	}
	var events []event
	held := make([]int, 5)
	stores := []*Store{open(), open(), open(), open(), open()}
	for end := c.now().Add(time.Hour); c.now().Before(end); c.pass(time.Duration(random.IntN(20_000)) * time.Millisecond) {
		i := random.IntN(len(stores))
		d := sessionstate.Demand{Want: random.IntN(12), Back: random.IntN(held[i] + 1)}
		loan := borrow(t, stores[i], bucket, d)
		held[i] = loan.Tokens // the others were spent
		if random.IntN(10) == 0 {
			held[i] = 0 // it died
		}
		events = append(events, event{c.now(), loan.Tokens - d.Back})
	}
	for i := range events {
		sum := 0
		for _, e := range events[i:] {
			sum += e.n
			if most := bucket.Burst + int(e.at.Sub(events[i].at)/bucket.Every); sum > most {
				t.Fatalf("%d tokens were lent from %v to %v, want %d at most", sum, events[i].at, e.at, most)
			}
		}
	}
}
