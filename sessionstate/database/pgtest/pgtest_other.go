//go:build !unix

// Package pgtest starts PostgreSQL for tests on Unix.
package pgtest

import "testing"

// A Cluster is a PostgreSQL server.
type Cluster struct{}

// New skips the test.
func New(t testing.TB, _ func(string) string) *Cluster {
	t.Skip("PostgreSQL is started for tests on Unix only")
	return nil
}

// Start does nothing.
func (*Cluster) Start() {}

// Kill does nothing.
func (*Cluster) Kill() {}

// Database returns nothing.
func (*Cluster) Database() string { return "" }

// Copy returns nothing.
func (*Cluster) Copy(string) string { return "" }

// Empty does nothing.
func (*Cluster) Empty(string) {}

// Socket returns nothing.
func (*Cluster) Socket() string { return "" }

// Dir returns nothing.
func (*Cluster) Dir() string { return "" }

// URL returns nothing.
func (*Cluster) URL(_, _ string) string { return "" }

// Bouncer returns nothing.
func (*Cluster) Bouncer(testing.TB, func(string) string) func(string) string { return nil }

// Ask returns nothing.
func (*Cluster) Ask(string, string, ...any) error { return nil }
