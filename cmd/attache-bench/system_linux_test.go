package main

import (
	"os"
	"testing"
)

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
