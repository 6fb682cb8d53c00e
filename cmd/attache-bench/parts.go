package main

import (
	"context"
	"fmt"
	"slices"
)

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

// httpParts returns the parts with HTTP on a side of the proxy.
func httpParts() (out []part) {
	for _, d := range []direction{httpToStdio, stdioToHTTP, httpToHTTP} {
		at := string(d) + "-"
		rows := []row{
			{name: at + "p50", unit: "µs", ref: floor, what: "p50 of a call with a result of 200 B", frame: frame{Size: 200}},
			{name: at + "result-4MiB", unit: "µs", ref: floor, what: "p50 of a call", frame: frame{Size: 4 * mib}},
			{name: at + "args-4MiB", unit: "µs", ref: floor, what: "p50 of a call", frame: frame{Size: 4 * mib, Args: true}},
			{name: at + "calls", unit: "call/s", ref: floor, what: "calls of 200 B a second, 64 sessions; from stdio one session, 64 in flight"},
			{name: at + "cpu", unit: "s", ref: floor, what: "CPU of the proxy process for 100,000 of them"},
			{name: at + "progress", unit: "msg/s", ref: floor, what: "progress notifications a second, 4,000 in one call"},
			{name: at + "first", unit: "ms", what: "delay of a notification, the next 200 ms behind it"},
		}
		if d != stdioToHTTP {
			rows = append(rows, row{name: at + "sessions", unit: "1/s", ref: floor, what: "sessions opened and ended a second, 4 at once"})
		}
		out = append(out, part{
			name: string(d), processes: 2, measure: d.measure, exclude: []string{direct, line, bytecopy}, rows: rows,
		}, part{
			name: at + "memory", processes: 1, measure: d.memory, exclude: []string{direct, line, bytecopy, floor},
			rows: []row{{name: at + "memory-1GiB", unit: "MiB", what: "peak resident of a result of 1 GiB, more than idle; from stdio of arguments, too", frame: frame{Size: gib}}},
		})
	}
	return out
}

// idlePart returns a part that measures the memory of idle sessions, each with a stream open.
func (d direction) idlePart(sessions int) part {
	at := string(d) + "-idle"
	return part{
		name: at, processes: 1, exclude: []string{direct, line, bytecopy, floor},
		rows: []row{
			{name: at, unit: "MiB", what: fmt.Sprintf("resident with %d idle sessions, each with a stream open", sessions)},
			{name: at + "-session", unit: "KiB", what: "resident for one of them"},
		},
		measure: func(ctx context.Context, p plan, s subject, _ []row) (sample, error) {
			return d.idle(ctx, s, at, min(sessions, p.Messages))
		},
	}
}
