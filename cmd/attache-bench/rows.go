package main

import (
	"context"
	"slices"
	"strconv"
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

// A sample has the values from one process, by the name of the row.
type sample map[string]float64

func (p part) includes(s subject) bool {
	return !slices.Contains(p.exclude, s.Name) && (s.Parts == nil || slices.Contains(s.Parts, p.name))
}

func parts() []part {
	return append([]part{
		{name: "start", processes: 4, measure: startUps, rows: []row{{
			name: "start", unit: "ms", ref: line, difference: true,
			what: "start of the process to the answer to initialize",
		}}},
		{name: "small calls", processes: 8, measure: sequential, rows: frames(line, 200, 4*kib)},
		{name: "large calls", processes: 2, measure: sequential, rows: slices.Concat(frames(line, 256*kib), frames(bytecopy, 4*mib, 32*mib))},
		{name: "pipelined", processes: 4, measure: pipelined, rows: []row{
			{name: "pipelined", unit: "msg/s", ref: line, what: "calls of 200 B a second, 64 in flight", frame: frame{Size: 200}},
			// The server alone has no figure: there is no proxy.
			{name: "cpu", unit: "s", ref: line, what: "CPU of the proxy process for 100,000 of them", frame: frame{Size: 200}},
		}},
		{name: "memory 32 MiB", measure: memory, processes: 1, exclude: []string{direct}, rows: []row{{
			name: "memory-32MiB", unit: "MiB", what: "peak resident after frames of 32 MiB both ways", frame: frame{Size: 32 * mib},
		}}},
		// The relay of lines would hold several copies of the frame.
		{name: "memory 1 GiB", measure: memory, processes: 1, exclude: []string{direct, line}, rows: []row{{
			name: "memory-1GiB", unit: "MiB", what: "peak resident after a frame of 1 GiB each way", frame: frame{Size: gib},
		}}},
		{name: "one CPU", processes: 2, measure: onOneCPU, rows: []row{{
			name: "one-cpu", unit: "µs", ref: line, what: "p50 of a call with a result of 200 B, all processes on one CPU", frame: frame{Size: 200},
		}}},
	}, append(httpParts(), httpToHTTP.idlePart(2000), httpToStdio.idlePart(1000))...)
}

// frames returns rows for calls with results and with arguments of the sizes.
func frames(ref string, sizes ...int) []row {
	var rows []row
	for _, size := range sizes {
		for _, f := range []frame{{Size: size}, {Size: size, Args: true}} {
			rows = append(rows, row{name: f.String(), unit: "µs", ref: ref, what: "p50 of a call, one after the other", frame: f})
		}
	}
	return rows
}

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
