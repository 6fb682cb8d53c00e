// Package testkit has the functions that tests of many packages need.
package testkit

import (
	"context"
	"log/slog"
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

// A LogHandler is a [slog.Handler] that calls a function with each record. It drops the attributes of With.
type LogHandler func(context.Context, slog.Record)

func (LogHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h LogHandler) Handle(ctx context.Context, r slog.Record) error {
	h(ctx, r)
	return nil
}

func (h LogHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h LogHandler) WithGroup(string) slog.Handler      { return h }

// Heap returns how many bytes the heap has after a garbage collection.
func Heap() int {
	runtime.GC()
	runtime.GC() // the second one frees what a sync.Pool keeps
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
