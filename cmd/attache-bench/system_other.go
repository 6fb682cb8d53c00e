//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

// errLinux is what everything here returns.
var errLinux = errors.New("needs Linux, for /proc and the CPU clocks of processes: run it there, in a container or a virtual machine")

func supported() error { return errLinux }

func peakResident(int) (float64, error) { return 0, errLinux }

func cpuTime(int) (time.Duration, error) { return 0, errLinux }

func startOnOneCPU(*exec.Cmd) error { return errLinux }

func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}

func machineBusy() time.Duration { return 0 }

func foreignBusy() time.Duration { return 0 }
