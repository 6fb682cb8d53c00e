package main

import (
	"math"
	"slices"
)

// A bound is a limit that a figure of attache should keep.
type bound struct {
	row     string
	figure  string
	atLeast bool   // the figure should be at least the limit, not at most
	unit    string // of the limits, empty for a ratio
	// limits has a limit for each of boundSubjects, in their order. The last ones
	// may be missing.
	limits []float64
}

// bounds returns the bounds that the project's issues on speed and memory set.
func bounds() []bound {
	const byLine, byCopy = " / line", " / copy"
	return []bound{
		{row: "result-200B", figure: "p50 of a small call" + byLine, limits: []float64{1.0, 1.1, 1.3, 1.3}},
		{row: "pipelined", figure: "messages a second, 64 in flight" + byLine, atLeast: true, limits: []float64{1.05, 0.9, 0.6, 0.6}},
		{row: "cpu", figure: "CPU per 100,000 messages" + byLine, limits: []float64{1.0, 1.6, 4, 4}},
		{row: "result-4MiB", figure: "results of 4 MiB" + byCopy, limits: []float64{1.25, 1.25}},
		{row: "args-4MiB", figure: "arguments of 4 MiB" + byCopy, limits: []float64{1.25, 1.25}},
		{row: "result-32MiB", figure: "results of 32 MiB" + byCopy, limits: []float64{1.25, 1.25}},
		{row: "args-32MiB", figure: "arguments of 32 MiB" + byCopy, limits: []float64{1.25, 1.25}},
		{row: "memory-32MiB", figure: "peak resident after 32 MiB frames", unit: "MiB", limits: []float64{40, 40}},
		{row: "memory-1GiB", figure: "peak resident after 1 GiB frames", unit: "MiB", limits: []float64{40, 40}},
		{row: "start", figure: "start to the first answer, more than line", unit: "ms", limits: []float64{6, 8, 8, 12}},
		{row: "one-cpu", figure: "p50 with all on one CPU" + byLine, limits: []float64{0.15, 0.2}},
		{row: "h2s-p50", figure: "HTTP to stdio: p50 of a small call / bridge", limits: []float64{1.2, 1.35}},
		{row: "h2s-calls", figure: "HTTP to stdio: calls a second, 64 sessions / bridge", atLeast: true, limits: []float64{0.95, 0.8}},
		{row: "h2s-cpu", figure: "HTTP to stdio: CPU a call / bridge", limits: []float64{1.2, 1.7}},
		{row: "h2s-result-4MiB", figure: "HTTP to stdio: results of 4 MiB / bridge", limits: []float64{1.1, 1.2}},
		{row: "h2s-args-4MiB", figure: "HTTP to stdio: arguments of 4 MiB / bridge", limits: []float64{1.1, 1.2}},
		{row: "h2s-progress", figure: "HTTP to stdio: progress notifications a second / bridge", atLeast: true, limits: []float64{0.9, 0.9}},
		{row: "h2s-first", figure: "HTTP to stdio: delay of the first event", unit: "ms", limits: []float64{5, 5}},
		{row: "h2s-sessions", figure: "HTTP to stdio: sessions opened and ended a second / bridge", atLeast: true, limits: []float64{0.9, 0.9}},
		{row: "s2h-p50", figure: "stdio to HTTP: p50 of a small call / bridge", limits: []float64{1.2, 1.4}},
		{row: "s2h-calls", figure: "stdio to HTTP: calls a second, 64 in flight / bridge", atLeast: true, limits: []float64{0.95, 0.8}},
		{row: "s2h-cpu", figure: "stdio to HTTP: CPU a call / bridge", limits: []float64{1.1, 1.5}},
		{row: "s2h-result-4MiB", figure: "stdio to HTTP: results of 4 MiB / bridge", limits: []float64{1.1, 1.2}},
		{row: "s2h-args-4MiB", figure: "stdio to HTTP: arguments of 4 MiB / bridge", limits: []float64{1.1, 1.2}},
		{row: "s2h-progress", figure: "stdio to HTTP: progress notifications a second / bridge", atLeast: true, limits: []float64{0.9, 0.9}},
		{row: "s2h-first", figure: "stdio to HTTP: delay of the first event", unit: "ms", limits: []float64{5, 5}},
		{row: "h2h-p50", figure: "HTTP to HTTP: p50 of a small call / reverse proxy", limits: []float64{1.05, 1.25}},
		{row: "h2h-calls", figure: "HTTP to HTTP: calls a second, 64 sessions / reverse proxy", atLeast: true, limits: []float64{1.4, 1}},
		{row: "h2h-cpu", figure: "HTTP to HTTP: CPU a call / reverse proxy", limits: []float64{0.65, 1}},
		{row: "h2h-result-4MiB", figure: "HTTP to HTTP: results of 4 MiB / reverse proxy", limits: []float64{1.4, 1.5}},
		{row: "h2h-args-4MiB", figure: "HTTP to HTTP: arguments of 4 MiB / reverse proxy", limits: []float64{1.4, 1.5}},
		{row: "h2h-progress", figure: "HTTP to HTTP: progress notifications a second / reverse proxy", atLeast: true, limits: []float64{0.8, 0.8}},
		{row: "h2h-first", figure: "HTTP to HTTP: delay of the first event", unit: "ms", limits: []float64{5, 5}},
		{row: "h2h-sessions", figure: "HTTP to HTTP: sessions opened and ended a second / reverse proxy", atLeast: true, limits: []float64{0.9, 0.9}},
		{row: "h2s-memory-1GiB", figure: "HTTP to stdio: peak resident of 1 GiB frames, more than idle", unit: "MiB", limits: []float64{40, 40}},
		{row: "s2h-memory-1GiB", figure: "stdio to HTTP: peak resident of 1 GiB frames, more than idle", unit: "MiB", limits: []float64{40, 40}},
		{row: "h2h-memory-1GiB", figure: "HTTP to HTTP: peak resident of 1 GiB frames, more than idle", unit: "MiB", limits: []float64{40, 40}},
		{row: "h2h-idle", figure: "HTTP to HTTP: resident with 2,000 idle sessions", unit: "MiB", limits: []float64{200, 200}},
		{row: "h2h-idle-session", figure: "HTTP to HTTP: resident for an idle session", unit: "KiB", limits: []float64{64, 64}},
		{row: "h2s-idle-session", figure: "HTTP to stdio: resident for an idle session", unit: "KiB", limits: []float64{64, 64}},
	}
}

// boundSubjects returns the names of the subjects that have bounds.
func boundSubjects() []string { return []string{plain, withFill, withRules, withCEL} }

// limit returns the limit for the subject, NaN if it has none.
func (b bound) limit(subject string) float64 {
	if i := slices.Index(boundSubjects(), subject); i >= 0 && i < len(b.limits) {
		return b.limits[i]
	}
	return math.NaN()
}

// verdict returns whether the subject's figure keeps the bound: "yes", "no", or "-" without
// a figure or a limit. It compares the figure as measured, before it is rounded for print.
func (b bound) verdict(subject string, s summary) string {
	limit := b.limit(subject)
	switch {
	case s.none() || math.IsNaN(limit):
		return "-"
	case b.atLeast && s.Median >= limit, !b.atLeast && s.Median <= limit:
		return "yes"
	}
	return "no"
}
