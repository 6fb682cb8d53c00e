package main

import (
	"os"
	"testing"
	"time"
)

func TestParseProcStat(t *testing.T) {
	p, ok := parseProcStat([]byte("4711 (a) b (c)) S 17 4711 17 0 -1 4194304 1 2 3 4 10 20 300 4000 20 0 1 0 99 0 0"))
	if want := (procStat{parent: 17, used: 4330 * tick}); !ok || p != want {
		t.Errorf("got %+v and %v, want %+v", p, ok, want)
	}
	for _, bad := range []string{"", "1 (x) S 2", "nonsense"} {
		if _, ok := parseProcStat([]byte(bad)); ok {
			t.Errorf("%q was understood", bad)
		}
	}
}

func TestForeignSumLeavesOutOurOwn(t *testing.T) {
	procs := map[int]procStat{
		1:  {0, time.Second},
		2:  {0, time.Hour}, // the kernel's
		3:  {2, time.Hour},
		10: {1, 2 * time.Second},
		20: {10, time.Hour}, // this one
		21: {20, time.Hour},
		22: {21, time.Hour},
		30: {99, 4 * time.Second}, // whose parent has gone
		40: {41, 8 * time.Second}, // a circle, from ids that were used again
		41: {40, 16 * time.Second},
	}
	if got, want := foreignSum(procs, 20), 31*time.Second; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSystemTellsOfThisProcess(t *testing.T) {
	if peak, err := peakResident(os.Getpid()); err != nil || peak < mib {
		t.Errorf("peak memory %v, %v", peak, err)
	}
	before, err := cpuTime(os.Getpid())
	if err != nil || before <= 0 {
		t.Errorf("CPU time %v, %v", before, err)
	}
	if machineBusy() <= 0 || foreignBusy() <= 0 {
		t.Errorf("machine %v, others %v", machineBusy(), foreignBusy())
	}
	if _, err := peakResident(0); err == nil {
		t.Error("peak memory of no process")
	}
}
