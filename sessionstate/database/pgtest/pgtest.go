// Package pgtest starts PostgreSQL for the duration of a test: see package pgserver. On
// other systems than Unix it skips the test.
package pgtest

import (
	"errors"
	"runtime"
	"testing"

	"github.com/attache-mcp/attache/sessionstate/database/pgserver"
)

// A Cluster is a PostgreSQL server with its own data directory. It does not wait for the disk:
// its files are in memory if enough is free, and otherwise not synchronized.
type Cluster struct {
	*pgserver.Cluster
	t testing.TB
}

// New starts a cluster for the duration of the test. If PostgreSQL is not installed, it skips
// the test, or fails it with CI=true. getenv is os.Getenv.
func New(t testing.TB, getenv func(string) string) *Cluster {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("PostgreSQL is started for tests on Unix only")
	}
	c, err := pgserver.New(pgserver.Options{
		Settings: "-c fsync=off -c max_connections=200 -c shared_buffers=16MB", Parent: memory(),
	})
	check(t, getenv, err)
	t.Cleanup(c.Close)
	return &Cluster{c, t}
}

// check ends the test if err is not nil.
func check(t testing.TB, getenv func(string) string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, pgserver.ErrMissing) && getenv("CI") != "true":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// must returns url, and ends the test if err is not nil.
func (c *Cluster) must(url string, err error) string {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	return url
}

// Start is [pgserver.Cluster.Start].
func (c *Cluster) Start() {
	c.t.Helper()
	c.must("", c.Cluster.Start())
}

// Database is [pgserver.Cluster.Database].
func (c *Cluster) Database() string { return c.must(c.Cluster.Database()) }

// Copy is [pgserver.Cluster.Copy].
func (c *Cluster) Copy(of string) string { return c.must(c.Cluster.Copy(of)) }

// Empty is [pgserver.Cluster.Empty].
func (c *Cluster) Empty(database string) {
	c.t.Helper()
	c.must("", c.Cluster.Empty(database))
}

// Bouncer starts a pgbouncer in transaction mode in front of the cluster for the duration of the
// test. It returns a function for the URL of a database through pgbouncer, which has fewer
// connections to the server than its clients have to it. If pgbouncer is not installed, Bouncer
// skips the test, or fails it with CI=true.
func (c *Cluster) Bouncer(t testing.TB, getenv func(string) string) func(database string) string {
	t.Helper()
	b, err := c.Cluster.Bouncer(2)
	check(t, getenv, err)
	return b.URL
}
