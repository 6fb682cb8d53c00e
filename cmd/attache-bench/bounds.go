package main

import (
	"math"
	"slices"
)

// A bound is a limit that a figure of attache should keep.
type bound struct {
	atLeast bool // the figure should be at least the limit, not at most
	// limits has a limit for each of boundSubjects, in their order. The last ones
	// may be missing.
	limits []float64
}

// bounds returns the bounds that the project's issues on speed and memory set, by the name of the row.
func bounds() map[string]bound {
	most := func(limits ...float64) bound { return bound{limits: limits} }
	least := func(limits ...float64) bound { return bound{atLeast: true, limits: limits} }
	return map[string]bound{
		"start":        most(6, 8, 8, 12),
		"result-200B":  most(1, 1.1, 1.3, 1.3),
		"pipelined":    least(1.05, 0.9, 0.6, 0.6),
		"cpu":          most(1, 1.6, 4, 4),
		"one-cpu":      most(0.15, 0.2),
		"memory-32MiB": most(40, 40), "memory-1GiB": most(40, 40),
		"result-4MiB": most(1.25, 1.25), "args-4MiB": most(1.25, 1.25),
		"result-32MiB": most(1.25, 1.25), "args-32MiB": most(1.25, 1.25),

		"h2s-p50": most(1.2, 1.35), "s2h-p50": most(1.2, 1.4), "h2h-p50": most(1.05, 1.25),
		"h2s-calls": least(0.95, 0.8), "s2h-calls": least(0.95, 0.8), "h2h-calls": least(1.4, 1),
		"h2s-cpu": most(1.2, 1.7), "s2h-cpu": most(1.1, 1.5), "h2h-cpu": most(0.65, 1),
		"h2s-result-4MiB": most(1.1, 1.2), "s2h-result-4MiB": most(1.1, 1.2), "h2h-result-4MiB": most(1.4, 1.5),
		"h2s-args-4MiB": most(1.1, 1.2), "s2h-args-4MiB": most(1.1, 1.2), "h2h-args-4MiB": most(1.4, 1.5),
		"h2s-progress": least(0.9, 0.9), "s2h-progress": least(0.9, 0.9), "h2h-progress": least(0.8, 0.8),
		"h2s-first": most(5, 5), "s2h-first": most(5, 5), "h2h-first": most(5, 5),
		"h2s-sessions": least(0.9, 0.9), "h2h-sessions": least(0.9, 0.9),
		"h2s-memory-1GiB": most(40, 40), "s2h-memory-1GiB": most(40, 40), "h2h-memory-1GiB": most(40, 40),
		"h2s-idle-session": most(64, 64), "h2h-idle-session": most(64, 64), "h2h-idle": most(200, 200),
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
