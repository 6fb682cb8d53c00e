package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func supported() error { return nil }

// peakResident is the most memory in bytes that the process had resident at any
// time. It is the process's own: a server behind it does not count.
func peakResident(pid int) (float64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for l := range strings.SplitSeq(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "VmHWM:"); ok {
			n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 64)
			return n * kib, err
		}
	}
	return 0, errors.New("no VmHWM in /proc: the process has ended")
}

// cpuTime is the CPU time of the process and all its threads, by its CPU clock:
// /proc counts in ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("clock_gettime: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// startOnOneCPU starts the command so that it and all it starts run on the first
// CPU that we may use: affinity is inherited from the thread that forks.
func startOnOneCPU(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	var ours, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &ours); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	for cpu := range len(ours) * 64 {
		if ours.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("sched_setaffinity: %w", err)
	}
	err := cmd.Start()
	if rerr := unix.SchedSetaffinity(0, &ours); rerr != nil {
		return errors.Join(err, rerr) // and leave the thread locked, to end with this goroutine
	}
	runtime.UnlockOSThread()
	return err
}

// ownGroup makes the command lead a process group, which is killed as one.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// The fields of /proc/stat's first line, after its name.
const (
	statIdle   = 3
	statIowait = 4
	statSteal  = 7
)

// machineBusy is the CPU time that all processes have used, and that a
// hypervisor took, since the machine was started.
func machineBusy() time.Duration {
	var busy time.Duration
	for i, v := range machineTimes() {
		if i != statIdle && i != statIowait && i <= statSteal { // what follows is counted before
			busy += v
		}
	}
	return busy
}

// machineTimes returns the fields of /proc/stat's first line.
func machineTimes() []time.Duration {
	b, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(b), "\n")
	var out []time.Duration
	for i, f := range strings.Fields(first) {
		if i > 0 {
			n, _ := strconv.Atoi(f)
			out = append(out, time.Duration(n)*tick)
		}
	}
	return out
}

// foreignBusy returns the CPU time used so far by all but this process and those
// that it started and that have ended.
func foreignBusy() time.Duration {
	sum := machineBusy()
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			sum -= time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
