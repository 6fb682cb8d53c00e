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
	// look is how long the machine is watched to tell whether it is quiet.
	look = 200 * time.Millisecond
)

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
