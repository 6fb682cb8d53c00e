// Package testkit has the functions that tests of many packages need.
package testkit

import (
	"runtime"
	"testing"
)

// Check ends the test if err is not nil.
func Check(t testing.TB, err error) {
	if err != nil {
		t.Helper() // not before: it takes longer than many functions under test
		t.Fatal(err)
	}
}

// Heap returns how many bytes the heap has after a garbage collection.
func Heap() int {
	runtime.GC()
	runtime.GC() // the second one frees what a sync.Pool keeps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
