package main

import (
	"context"
	"runtime"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

const (
	// quietShare is the share of the machine that may be busy before a
	// measurement begins.
	quietShare = 0.10
	// foreignShare is the share of one CPU that others may use during it.
	foreignShare = 0.10
	// foreignLeast is how much they may use however short it is: CPU time comes
	// in ticks of 10 ms.
	foreignLeast = 20 * time.Millisecond
	// look is how long the machine is watched to tell whether it is quiet.
	look = 200 * time.Millisecond
)

// noise counts what other processes did to a run.
type noise struct {
	Slots, Again, Kept int
}

// waitQuiet waits until the machine is idle while we do nothing, or for the
// longest time, and returns how long that was.
func waitQuiet(ctx context.Context, longest time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < longest && ctx.Err() == nil {
		before := machine.Busy()
		time.Sleep(look)
		busy := (machine.Busy() - before).Seconds() / look.Seconds()
		if busy <= quietShare*float64(runtime.NumCPU()) {
			break
		}
	}
	return time.Since(began)
}

// A watch tells how much CPU time other processes use while it runs.
type watch struct {
	began  time.Time
	before time.Duration
}

func startWatch() watch { return watch{time.Now(), machine.ForeignBusy()} }

func (w watch) stop() (foreign, span time.Duration) {
	return machine.ForeignBusy() - w.before, time.Since(w.began)
}

// disturbed reports whether others used too much.
func disturbed(foreign, span time.Duration) bool {
	return foreign > foreignLeast && foreign.Seconds() > foreignShare*span.Seconds()
}
