package main

import (
	"math"
	"slices"
)

// results holds what was measured, by row, subject and round.
type results struct {
	rounds   int
	values   map[cell][][]float64 // by round, one value a process
	failures []failure
}

type cell struct{ row, subject string }

// A failure is what a subject could not do. It is not asked again.
type failure struct {
	Part, Subject, Error string
}

func newResults(rounds int) *results {
	return &results{rounds: rounds, values: map[cell][][]float64{}}
}

func (r *results) add(round int, s subject, v sample) {
	for name, x := range v {
		c := cell{name, s.Name}
		if r.values[c] == nil {
			r.values[c] = make([][]float64, r.rounds)
		}
		r.values[c][round] = append(r.values[c][round], x)
	}
}

func (r *results) fail(p part, s subject, err error) {
	r.failures = append(r.failures, failure{p.name, s.Name, err.Error()})
}

func (r *results) failed(p part, s subject) bool {
	return slices.ContainsFunc(r.failures, func(f failure) bool { return f.Part == p.name && f.Subject == s.Name })
}

// byRound returns one value a round: the median of its processes, and NaN where
// there is none.
func (r *results) byRound(row, subject string) []float64 {
	out := make([]float64, r.rounds)
	for i := range out {
		out[i] = math.NaN()
		if v := r.values[cell{row, subject}]; v != nil {
			out[i] = median(v[i])
		}
	}
	return out
}

// compared returns the row's values of the subject set against those that its
// reference has in the same rounds. Without a reference they are as they are.
func (r *results) compared(of row, subject string) []float64 {
	v := r.byRound(of.name, subject)
	if of.ref == "" {
		return v
	}
	for i, ref := range r.byRound(of.name, of.ref) {
		if of.difference {
			v[i] -= ref
		} else {
			v[i] /= ref
		}
	}
	return v
}

// A summary is what the rounds come to. All is NaN if there were none.
type summary struct{ Median, Min, Max float64 }

func summarize(v []float64) summary {
	v = slices.DeleteFunc(slices.Clone(v), math.IsNaN)
	if len(v) == 0 {
		return summary{math.NaN(), math.NaN(), math.NaN()}
	}
	return summary{median(v), slices.Min(v), slices.Max(v)}
}

func (s summary) none() bool { return math.IsNaN(s.Median) }

// median is NaN of nothing, and between the middle two of an even number.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
