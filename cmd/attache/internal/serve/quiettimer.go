package serve

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"time"
)

const (
	// quietTime is how long no request was answered before memory goes back to the system.
	quietTime = 500 * time.Millisecond
	// leastAllocated is how many bytes were allocated since that was done last.
	leastAllocated = 4 << 20
)

// A quietTimer calls a function when no request has been answered for quietTime, once for the
// requests before. While requests come it costs each of them two atomic operations.
type quietTimer struct {
	quiet func()

	answered atomic.Int64
	running  atomic.Bool
}

// request notes that a request was answered.
func (t *quietTimer) request() {
	n := t.answered.Add(1)
	if !t.running.Load() && t.running.CompareAndSwap(false, true) {
		t.start(n)
	}
}

// start has the timer look again in quietTime. answered is how many requests were answered by now.
func (t *quietTimer) start(answered int64) {
	time.AfterFunc(quietTime, func() { t.look(answered) })
}

func (t *quietTimer) look(before int64) {
	if now := t.answered.Load(); now != before {
		t.start(now)
		return
	}
	t.quiet()
	t.running.Store(false)
	if now := t.answered.Load(); now != before && t.running.CompareAndSwap(false, true) {
		t.start(now)
	}
}

// newMemoryReturner returns a function that gives memory back to the system which is not used.
// Between two collections the heap grows by a part of its size, which is more than the sessions
// need that caused it. While a front is busy that saves time, and afterwards it serves nothing.
func newMemoryReturner() func() {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	var before uint64
	return func() {
		if metrics.Read(sample); sample[0].Value.Uint64()-before >= leastAllocated {
			runtime.GC() // and another time below: each halves the stacks that are too large
			debug.FreeOSMemory()
			before = sample[0].Value.Uint64()
		}
	}
}
