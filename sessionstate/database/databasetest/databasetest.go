// Package databasetest connects tests to a database that several machines share.
package databasetest

import (
	"testing"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
)

// Connect connects to the server with the URL until the test ends. The timeouts are long enough
// for a slow machine.
func Connect(t testing.TB, url string) *database.Server {
	t.Helper()
	return ConnectWith(t, database.ServerOptions{URL: url})
}

// Migrate creates the tables of schema in the database with the URL, and returns the URL.
func Migrate(t testing.TB, url string, schema database.Schema) string {
	t.Helper()
	server := Connect(t, url)
	if _, err := server.Migrate(t.Context(), []database.Schema{schema}); err != nil {
		t.Fatal(err)
	}
	_ = server.Close() // a database with connections cannot be copied
	return url
}

// ConnectWith is Connect with more options.
func ConnectWith(t testing.TB, o database.ServerOptions) *database.Server {
	t.Helper()
	o.Connections = 10
	o.Timeouts = database.Timeouts{Connect: time.Minute, Statement: time.Minute, Lock: time.Minute, All: 2 * time.Minute, Answer: 2 * time.Minute, Again: 2 * time.Minute}
	server, err := database.Connect(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}
