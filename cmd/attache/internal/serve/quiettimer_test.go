package serve

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The function is called once after each series of requests, and not during it.
func TestQuietTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		timer := quietTimer{quiet: func() { calls.Add(1) }}
		for burst := range int64(3) {
			for range 10 {
				timer.request()
				time.Sleep(quietTime / 2)
				if n := calls.Load(); n != burst {
					t.Fatalf("%d calls during the requests, want %d", n, burst)
				}
			}
			time.Sleep(10 * quietTime)
			if n := calls.Load(); n != burst+1 {
				t.Fatalf("%d calls after the requests, want %d", n, burst+1)
			}
		}
	})
}

// If a request is answered while the function runs, it is called again.
func TestQuietTimerBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		timer := quietTimer{quiet: func() { calls.Add(1); time.Sleep(quietTime) }}
		timer.request()
		time.Sleep(quietTime + quietTime/2)
		timer.request()
		time.Sleep(10 * quietTime)
		if n := calls.Load(); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
	})
}

// Memory is returned only if some has been allocated since the last time.
func TestMemoryReturner(t *testing.T) {
	collections := func() uint32 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.NumForcedGC
	}
	returnMemory := newMemoryReturner()
	returnMemory()
	before, used := collections(), make([]byte, 2*leastAllocated)
	if returnMemory(); collections() == before {
		t.Error("no memory was returned")
	}
	runtime.KeepAlive(used)
}
