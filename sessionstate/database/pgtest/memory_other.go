//go:build !linux

package pgtest

// memory returns "", because no directory is known to be in memory.
func memory() string { return "" }
