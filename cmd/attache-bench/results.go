package main

import (
	"math"
	"slices"
)

// results holds the values measured.
type results struct {
	rounds   int
	values   map[cell][]float64 // one value a process
	failures []failure
}

type cell struct {
	row, subject string
	round        int
}

// A failure is an error of a subject in some parts. The subject is not measured again in them.
type failure struct {
	subject, text string
	parts         []string
}

func newResults(rounds int) *results {
	return &results{rounds: rounds, values: map[cell][]float64{}}
}

func (r *results) add(round int, s subject, v sample) {
	for name, x := range v {
		c := cell{name, s.Name, round}
		r.values[c] = append(r.values[c], x)
	}
}

func (r *results) fail(p part, s subject, err error) {
	i := slices.IndexFunc(r.failures, func(f failure) bool { return f.subject == s.Name && f.text == err.Error() })
	if i < 0 {
		i = len(r.failures)
		r.failures = append(r.failures, failure{subject: s.Name, text: err.Error()})
	}
	r.failures[i].parts = append(r.failures[i].parts, p.name)
}

func (r *results) failed(p part, s subject) bool {
	return slices.ContainsFunc(r.failures, func(f failure) bool { return f.subject == s.Name && slices.Contains(f.parts, p.name) })
}

// byRound returns one value for each round: the median of its processes, NaN if
// there is none.
func (r *results) byRound(row, subject string) []float64 {
	out := make([]float64, r.rounds)
	for round := range out {
		out[round] = median(r.values[cell{row, subject, round}])
	}
	return out
}

func (r *results) measured(row, subject string) summary { return summarize(r.byRound(row, subject)) }

// compared returns the values of a row for the subject, each compared with the value of
// the row's reference in the same round. Without a reference it returns the values measured.
func (r *results) compared(of row, subject string) summary {
	v := r.byRound(of.name, subject)
	if of.ref == "" {
		return summarize(v)
	}
	for i, ref := range r.byRound(of.name, of.ref) {
		if of.difference {
			v[i] -= ref
		} else {
			v[i] /= ref
		}
	}
	return summarize(v)
}

// A summary summarizes the values of the rounds. All its fields are NaN if there were none.
type summary struct{ Median, Min, Max float64 }

func summarize(v []float64) summary {
	v = slices.DeleteFunc(v, math.IsNaN)
	if len(v) == 0 {
		return summary{math.NaN(), math.NaN(), math.NaN()}
	}
	return summary{median(v), slices.Min(v), slices.Max(v)}
}

func (s summary) none() bool { return math.IsNaN(s.Median) }

// median returns the median of v: the mean of the middle two if there is an even number,
// NaN if there are none.
func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
