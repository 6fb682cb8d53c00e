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

// pollable returns the file on the same descriptor in non-blocking mode, so that
// Go's poller waits and no thread does.
func pollable(f *os.File) *os.File {
	fd := int(f.Fd())
	if syscall.SetNonblock(fd, true) != nil {
		return f
	}
	return os.NewFile(uintptr(fd), f.Name())
}

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

func machineTimes() []time.Duration {
	b, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(b), "\n")
	var out []time.Duration
	for i, f := range strings.Fields(first) {
		if i > 0 {
			out = append(out, ticks(f))
		}
	}
	return out
}

func ticks(s string) time.Duration {
	n, _ := strconv.Atoi(s)
	return time.Duration(n) * tick
}

// A procStat is what /proc tells of a process.
type procStat struct {
	parent int
	// used is the CPU time of the process and of those of its children that are
	// gone. So the sum over processes keeps what short-lived ones used.
	used time.Duration
}

// The fields of /proc/PID/stat after the name, which may hold anything.
const (
	pidParent = 1
	pidTimes  = 11 // four: user and system, and both of the children waited for
)

func parseProcStat(b []byte) (procStat, bool) {
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) < pidTimes+4 {
		return procStat{}, false
	}
	p := procStat{}
	p.parent, _ = strconv.Atoi(f[pidParent])
	for _, v := range f[pidTimes : pidTimes+4] {
		p.used += ticks(v)
	}
	return p, true
}

// kernelThreads is the process that kernel threads descend from.
const kernelThreads = 2

// foreignBusy is the CPU time used so far by processes that do not descend from
// this one, and what a hypervisor took.
func foreignBusy() time.Duration {
	procs := map[int]procStat{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		if p, ok := parseProcStat(b); ok {
			procs[pid] = p
		}
	}
	sum := foreignSum(procs, os.Getpid())
	if t := machineTimes(); len(t) > statSteal {
		sum += t[statSteal]
	}
	return sum
}

func foreignSum(procs map[int]procStat, self int) time.Duration {
	var sum time.Duration
	for pid, p := range procs {
		if !descends(procs, pid, self) && !descends(procs, pid, kernelThreads) {
			sum += p.used
		}
	}
	return sum
}

// descends reports whether the process is the ancestor or descends from it. The
// processes are read one after the other, so a parent may be missing, or an id
// used again: the way up is bounded.
func descends(procs map[int]procStat, pid, ancestor int) bool {
	for range len(procs) {
		if pid == ancestor {
			return true
		}
		p, ok := procs[pid]
		if !ok || p.parent == 0 {
			return false
		}
		pid = p.parent
	}
	return false
}
