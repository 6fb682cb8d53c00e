// Package machine measures the resource use of processes and of the machine.
package machine

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

// Supported returns an error if this system cannot be measured.
func Supported() error { return nil }

// PeakResident returns the peak of the process's resident memory in bytes, without its
// children.
func PeakResident(pid int) (float64, error) {
	return statusBytes(pid, "VmHWM:")
}

// Resident returns the resident memory of the process in bytes.
func Resident(pid int) (float64, error) { return statusBytes(pid, "VmRSS:") }

// statusBytes returns a size from the status of a process in /proc.
func statusBytes(pid int, field string) (float64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for l := range strings.SplitSeq(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, field); ok {
			n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 64)
			return n * 1024, err
		}
	}
	return 0, errors.New("/proc does not say how much memory the process has: it has ended")
}

// CPUTime returns the CPU time of the process and all its threads. It reads the CPU clock of
// the process, because /proc counts in ticks of 10 ms.
func CPUTime(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("clock_gettime: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// OnOneCPU calls f while this process and those that it starts run only on the first CPU that
// this process may use.
func OnOneCPU(f func() error) error {
	var ours, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &ours); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	for cpu := range len(ours) * 64 {
		if ours.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	err := restrict(&one)
	if err == nil {
		err = f()
	}
	return errors.Join(err, restrict(&ours))
}

// restrict makes all threads of this process run only on the given CPUs. New threads and processes inherit
// this from the thread that starts them. During the first pass, a thread that is not restricted yet may
// start another one, which the second pass restricts.
func restrict(to *unix.CPUSet) error {
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, thread := range threads {
			id, _ := strconv.Atoi(thread.Name())
			if err := unix.SchedSetaffinity(id, to); err != nil && err != unix.ESRCH { // the thread has ended
				return fmt.Errorf("sched_setaffinity: %w", err)
			}
		}
	}
	return nil
}

// OwnGroup makes the command the leader of a process group, which its context kills as a whole.
func OwnGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// KillGroup kills the process group of a command that leads one.
func KillGroup(cmd *exec.Cmd) { Signal(-cmd.Process.Pid, syscall.SIGKILL) }

// Signals that not all systems have: a process stops until it gets Continue.
const (
	Stop     = syscall.SIGSTOP
	Continue = syscall.SIGCONT
)

// Signal sends a process a signal, or with -pid its group.
func Signal(pid int, s syscall.Signal) { _ = syscall.Kill(pid, s) }

// tick is the unit of the times in /proc.
const tick = 10 * time.Millisecond

// Fields of the first line of /proc/stat. Field 0 is its name.
const (
	statIdle   = 4
	statIowait = 5
	statSteal  = 8
)

// Busy returns the CPU time that all processes have used, and that a hypervisor took, since
// the machine was started.
func Busy() time.Duration {
	b, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(b), "\n")
	ticks := 0
	for i, field := range strings.Fields(first) {
		if i > 0 && i != statIdle && i != statIowait && i <= statSteal { // the fields after steal are part of others
			n, _ := strconv.Atoi(field)
			ticks += n
		}
	}
	return time.Duration(ticks) * tick
}
