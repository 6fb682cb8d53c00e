//go:build unix

// Package pgtest starts PostgreSQL for tests, to the end of the test: see package pgserver.
package pgtest

import (
	"errors"
	"testing"

	"github.com/attache-mcp/attache/sessionstate/database/pgserver"
)

// A Cluster is a PostgreSQL server of its own. It does not wait for the disk: its files are in
// memory where there is room for them, and are not synchronized elsewhere.
type Cluster struct {
	*pgserver.Cluster
	t testing.TB
}

// New starts a cluster to the end of the test. Where PostgreSQL is not installed the test is
// skipped, but with CI=true it fails. getenv is os.Getenv.
func New(t testing.TB, getenv func(string) string) *Cluster {
	t.Helper()
	c, err := pgserver.New(pgserver.Options{
		Getenv: getenv, Settings: "-c fsync=off -c max_connections=200 -c shared_buffers=16MB", Parent: memory(),
	})
	check(t, getenv, err)
	t.Cleanup(c.Close)
	return &Cluster{c, t}
}

// check ends the test if there is an error.
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

// must returns what there is without an error.
func (c *Cluster) must(url string, err error) string {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
	return url
}

// Start starts the server, which was killed, and waits until it answers.
func (c *Cluster) Start() {
	c.t.Helper()
	c.must("", c.Cluster.Start())
}

// Database makes an empty database, and returns its URL for a role that owns it and has no
// other rights.
func (c *Cluster) Database() string { return c.must(c.Cluster.Database()) }

// Copy makes a copy of a database, which nobody uses, and returns its URL as Database does.
func (c *Cluster) Copy(of string) string { return c.must(c.Cluster.Copy(of)) }

// Empty removes all rows from the tables of a database, but keeps the versions of the tables.
func (c *Cluster) Empty(database string) {
	c.t.Helper()
	c.must("", c.Cluster.Empty(database))
}

// Bouncer starts a pgbouncer in transaction mode before the cluster, to the end of the test,
// and returns what the URL of a database is over it. It has fewer connections to the server
// than its clients have to it. Where there is no pgbouncer the test is skipped, but with
// CI=true it fails.
func (c *Cluster) Bouncer(t testing.TB, getenv func(string) string) func(database string) string {
	t.Helper()
	b, err := c.Cluster.Bouncer(2)
	check(t, getenv, err)
	return func(database string) string { return c.must(b.URL(database)) }
}
