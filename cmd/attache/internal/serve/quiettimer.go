package serve

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// quietTime is how long no request must be answered before memory is returned to the system.
	quietTime = 500 * time.Millisecond
	// leastAllocated is how many bytes must be allocated before memory is returned again.
	leastAllocated = 4 << 20
)

// A quietTimer calls a function once when no request has been answered for quietTime. Each request
// costs it two atomic operations.
type quietTimer struct {
	quiet func()

	answered atomic.Int64
	running  atomic.Bool
}

// request records that a request was answered.
func (t *quietTimer) request() {
	n := t.answered.Add(1)
	if !t.running.Load() && t.running.CompareAndSwap(false, true) {
		t.start(n)
	}
}

// start schedules the next look after quietTime. answered is the number of requests answered so far.
func (t *quietTimer) start(answered int64) {
	time.AfterFunc(quietTime, func() { t.look(answered) })
}

// look calls quiet if the number of answered requests is still before. Otherwise it looks again later.
func (t *quietTimer) look(before int64) {
	if now := t.answered.Load(); now != before {
		t.start(now)
		return
	}
	t.quiet()
	t.running.Store(false)
	// A request during quiet has seen that the timer is running, and has not started it.
	if now := t.answered.Load(); now != before && t.running.CompareAndSwap(false, true) {
		t.start(now)
	}
}

// newMemoryReturner returns a function that returns unused memory to the system. Between two
// garbage collections the heap grows by a percentage of its size, beyond what the sessions need.
// That saves time while a front is busy, and is of no use afterwards.
func newMemoryReturner() func() {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var before uint64
	return func() {
		if metrics.Read(sample); sample[0].Value.Uint64()-before >= leastAllocated {
			runtime.GC() // FreeOSMemory collects again: each collection halves stacks that are too large
			debug.FreeOSMemory()
			before = sample[0].Value.Uint64()
		}
	}
}
