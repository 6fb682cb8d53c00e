//go:build !linux

package machine

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// errLinux is returned by all functions on other systems.
var errLinux = errors.New("needs Linux, for /proc and the CPU clocks of processes: run it there, in a container or a virtual machine")

// Supported needs Linux.
func Supported() error { return errLinux }

// PeakResident needs Linux.
func PeakResident(int) (float64, error) { return 0, errLinux }

// Resident needs Linux.
func Resident(int) (float64, error) { return 0, errLinux }

// CPUTime needs Linux.
func CPUTime(int) (time.Duration, error) { return 0, errLinux }

// OnOneCPU needs Linux.
func OnOneCPU(func() error) error { return errLinux }

// OwnGroup needs Linux.
func OwnGroup(*exec.Cmd) {}

// KillGroup needs Linux.
func KillGroup(*exec.Cmd) {}

// Signals of Linux.
const (
	Stop     = syscall.Signal(0x13)
	Continue = syscall.Signal(0x12)
)

// Signal needs Linux.
func Signal(int, syscall.Signal) {}

// Busy needs Linux.
func Busy() time.Duration { return 0 }
