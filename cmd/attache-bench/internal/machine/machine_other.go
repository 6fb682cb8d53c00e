//go:build !linux

package machine

import (
	"errors"
	"os/exec"
	"time"
)

// errLinux is what everything here returns.
var errLinux = errors.New("needs Linux, for /proc and the CPU clocks of processes: run it there, in a container or a virtual machine")

// Supported is for Linux.
func Supported() error { return errLinux }

// PeakResident is for Linux.
func PeakResident(int) (float64, error) { return 0, errLinux }

// Resident is for Linux.
func Resident(int) (float64, error) { return 0, errLinux }

// CPUTime is for Linux.
func CPUTime(int) (time.Duration, error) { return 0, errLinux }

// StartOnOneCPU is for Linux.
func StartOnOneCPU(*exec.Cmd) error { return errLinux }

// OwnGroup is for Linux.
func OwnGroup(*exec.Cmd) {}

// KillGroup is for Linux.
func KillGroup(*exec.Cmd) {}

// Busy is for Linux.
func Busy() time.Duration { return 0 }
