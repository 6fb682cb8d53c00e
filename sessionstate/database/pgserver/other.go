//go:build !unix

// Package pgserver starts PostgreSQL, where that can be done.
package pgserver
