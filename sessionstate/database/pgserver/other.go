//go:build !unix

// Package pgserver starts PostgreSQL on Unix.
package pgserver
