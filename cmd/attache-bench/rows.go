package main

import (
	"context"
	"slices"
	"strconv"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// A row is one figure of every subject of its part.
type row struct {
	name string
	unit string
	what string
	// ref is the subject with which the others are compared, empty for none.
	ref string
	// difference selects comparison by subtraction, not division.
	difference bool
	// frame is the call to time, for rows that time one.
	frame frame
}

// against describes how the row is compared.
func (r row) against() string {
	switch {
	case r.ref == "":
		return "-"
	case r.difference:
		return "minus " + r.ref
	}
	return "by " + r.ref
}

// A part is one way to measure. A new process of one subject gives one value for
// each row.
type part struct {
	name string
	rows []row
	// processes is how many new processes a round measures. The CPUs on which a
	// process runs can double the p50 of small calls; nothing else differs as much
	// from one process to the next.
	processes int
	// exclude has the subjects that this part cannot measure.
	exclude []string
	measure func(context.Context, plan, subject, []row) (sample, error)
}

func (p part) includes(s subject) bool {
	return !slices.Contains(p.exclude, s.Name) && (s.Parts == nil || slices.Contains(s.Parts, p.name))
}

// A plan has the amounts to measure.
type plan struct {
	Rounds    int
	Processes int           // most new processes of a subject in a round
	Starts    int           // start-ups in one measurement
	Warm      int           // small calls before the first that counts
	Calls     int           // small calls that count, for each process
	Large     int           // calls of 4 MiB; there are more smaller ones and fewer larger ones
	Messages  int           // pipelined messages for each process
	Window    int           // most of them in flight
	Budget    time.Duration // after which a slow subject takes no more samples
	Timeout   time.Duration // for one process, start to end
	Quiet     time.Duration // longest wait for a quiet machine before a measurement
	Patience  time.Duration // longest sum of these waits in a round
}

// samples returns how many calls of a frame of that size count.
func (p plan) samples(size int) int {
	switch {
	case size >= 32*mib:
		return max(2, p.Large/3)
	case size >= 4*mib:
		return max(2, p.Large)
	case size >= 256*kib:
		return max(2, p.Large*4)
	}
	return p.Calls
}

// A sample has the values from one process, by the name of the row.
type sample map[string]float64

// A frame is a tools/call whose result, or whose argument, is Size bytes long.
type frame struct {
	Args bool
	Size int
}

func (f frame) String() string {
	if f.Args {
		return "args-" + formatSize(f.Size)
	}
	return "result-" + formatSize(f.Size)
}

// formatSize formats a size in bytes with its unit.
func formatSize(n int) string {
	switch {
	case n >= gib:
		return strconv.Itoa(n>>30) + "GiB"
	case n >= mib:
		return strconv.Itoa(n>>20) + "MiB"
	case n >= kib:
		return strconv.Itoa(n>>10) + "KiB"
	}
	return strconv.Itoa(n) + "B"
}
