package main

import (
	"context"
	"runtime"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

const (
	// quietShare is the share of the machine's CPU time that others may use
	// when a measurement begins.
	quietShare = 0.10
	// quietPeriod is how long that share is measured.
	quietPeriod = 200 * time.Millisecond
)

// waitQuiet waits until the machine is quiet, but no longer than limit, and returns
// how long it waited.
func waitQuiet(ctx context.Context, limit time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < limit && ctx.Err() == nil {
		before := machine.Busy()
		time.Sleep(quietPeriod)
		busy := (machine.Busy() - before).Seconds() / quietPeriod.Seconds()
		if busy <= quietShare*float64(runtime.NumCPU()) {
			break
		}
	}
	return time.Since(began)
}
