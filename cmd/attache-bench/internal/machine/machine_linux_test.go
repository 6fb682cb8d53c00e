package machine

import (
	"os"
	"testing"
)

func TestOfThisProcess(t *testing.T) {
	if peak, err := PeakResident(os.Getpid()); err != nil || peak < 1<<20 {
		t.Errorf("peak memory %v, %v", peak, err)
	}
	before, err := CPUTime(os.Getpid())
	if err != nil || before <= 0 {
		t.Errorf("CPU time %v, %v", before, err)
	}
	if Busy() <= 0 {
		t.Errorf("the machine was busy for %v", Busy())
	}
	if _, err := PeakResident(0); err == nil {
		t.Error("no error for a process that does not exist")
	}
}
