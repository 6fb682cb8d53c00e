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

// A row is one figure that every subject of its part gets.
type row struct {
	name string
	unit string
	what string
	// ref is the subject the others are set against, empty for none.
	ref string
	// difference says that they are set against it by subtraction.
	difference bool
	// frame is the call that is timed, where one is.
	frame frame
}

// against says what the row is set against, for people.
func (r row) against() string {
	switch {
	case r.ref == "":
		return "-"
	case r.difference:
		return "minus " + r.ref
	}
	return "by " + r.ref
}

// A part is one way to measure: a fresh process of one subject gives one value
// of each of its rows.
type part struct {
	name string
	rows []row
	// processes is how many fresh ones a round takes. Which CPUs the processes of
	// a subject get differs from one to the next, and doubles the p50 of small
	// calls; nothing else differs as much.
	processes int
	// leaves out the subjects that make no sense here.
	leaves  []string
	measure func(context.Context, plan, subject, []row) (sample, error)
}

// A sample is what one process gave, by the name of the row.
type sample map[string]float64

func (p part) takes(s subject) bool {
	return !slices.Contains(p.leaves, s.Name) && (s.Parts == nil || slices.Contains(s.Parts, p.name))
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
			// The server alone has no proxy whose time could be taken.
			{name: "cpu", unit: "s", ref: line, what: "CPU of the proxy process for 100,000 of them", frame: frame{Size: 200}},
		}},
		{name: "memory 32 MiB", measure: memory, processes: 1, leaves: []string{direct}, rows: []row{{
			name: "memory-32MiB", unit: "MiB", what: "peak resident after frames of 32 MiB both ways", frame: frame{Size: 32 * mib},
		}}},
		// The relay of lines would hold the frame several times over.
		{name: "memory 1 GiB", measure: memory, processes: 1, leaves: []string{direct, line}, rows: []row{{
			name: "memory-1GiB", unit: "MiB", what: "peak resident after a frame of 1 GiB each way", frame: frame{Size: gib},
		}}},
		{name: "one CPU", processes: 2, measure: onOneCPU, rows: []row{{
			name: "one-cpu", unit: "µs", ref: line, what: "p50 of a call with a result of 200 B, all processes on one CPU", frame: frame{Size: 200},
		}}},
	}, append(httpParts(), httpToHTTP.idlePart(2000), httpToStdio.idlePart(1000))...)
}

// frames returns the rows of calls with results, and with arguments, of sizes.
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
		return "args-" + label(f.Size)
	}
	return "result-" + label(f.Size)
}

// label writes a size as people do.
func label(n int) string {
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
