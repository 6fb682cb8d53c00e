package main

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report returns the results of the run as Markdown.
func (b *bench) report(took time.Duration) string {
	var w strings.Builder
	fmt.Fprintf(&w, "attache-bench, %s, %s, %d CPUs, %s, %d rounds interleaved in %.0f s\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(), runtime.Version(), b.plan.Rounds, took.Seconds())
	b.reportFigures(&w)
	b.reportBounds(&w)
	for _, f := range b.results.failures {
		fmt.Fprintf(&w, "- FAILED: %s (%s): %s\n", f.subject, strings.Join(f.parts, ", "), f.text)
	}
	return w.String()
}

func (b *bench) rows() (all []row) {
	for _, p := range b.parts {
		all = append(all, p.rows...)
	}
	return all
}

// reportFigures writes the figures of each subject: the median over the rounds, the
// least and the greatest value, and the comparison with the row's reference.
func (b *bench) reportFigures(w *strings.Builder) {
	names := []string{"row", "unit", "against"}
	for _, s := range b.subjects {
		names = append(names, s.Name)
	}
	tableHead(w, names)
	for _, r := range b.rows() {
		fmt.Fprintf(w, "| %s | %s | %s |", r.name, r.unit, r.against())
		for _, s := range b.subjects {
			fmt.Fprintf(w, " %s |", b.cellText(r, s.Name))
		}
		w.WriteByte('\n')
	}
	w.WriteByte('\n')
}

// cellText returns a cell in the form 17.2 (15.9-19.0) 0.86x.
func (b *bench) cellText(of row, subject string) string {
	v, compared := b.results.measured(of.name, subject), b.results.compared(of, subject)
	if v.none() {
		return "-"
	}
	out := fmt.Sprintf("%s (%s-%s)", short(v.Median), short(v.Min), short(v.Max))
	switch {
	case of.ref == "" || of.ref == subject || compared.none():
		return out
	case of.difference:
		return out + fmt.Sprintf(" **%+.2f**", compared.Median)
	}
	return out + " **" + short(compared.Median) + "x**"
}

// reportBounds writes the figures that have bounds, and whether attache keeps them.
func (b *bench) reportBounds(w *strings.Builder) {
	var lines []string
	all := bounds()
	for _, r := range b.rows() {
		bd, figure, unit := all[r.name], r.name, r.unit
		if r.ref != "" {
			figure += " " + r.against()
		}
		if r.ref != "" && !r.difference {
			unit = "" // of a ratio
		}
		var figures, verdicts []string
		for _, name := range boundSubjects() {
			measured := slices.ContainsFunc(b.subjects, func(s subject) bool { return s.Name == name })
			if !measured || math.IsNaN(bd.limit(name)) {
				figures = append(figures, "")
				continue
			}
			s := b.results.compared(r, name)
			text := "-"
			if !s.none() {
				text = fmt.Sprintf("%s (%s to %s)", short(s.Median), short(s.Min), short(s.Max))
			}
			figures = append(figures, text)
			verdicts = append(verdicts, bd.verdict(name, s))
		}
		if verdicts != nil {
			lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s |\n", figure, bd.text(unit), strings.Join(figures, " | "), joinVerdicts(verdicts)))
		}
	}
	if lines != nil {
		tableHead(w, []string{"figure", "bound", "default chain", "fill and briefing", "20 rules", "20 rules with CEL", "ok"})
		w.WriteString(strings.Join(lines, "") + "\n")
	}
}

func (b bound) text(unit string) string {
	word := "at most"
	if b.atLeast {
		word = "at least"
	}
	var limits []string
	for _, l := range b.limits {
		limits = append(limits, strconv.FormatFloat(l, 'f', -1, 64))
	}
	return strings.TrimSpace(word + " " + strings.Join(limits, " / ") + " " + unit)
}

// joinVerdicts returns the verdicts in one cell, a single word if all are the same.
func joinVerdicts(verdicts []string) string {
	if len(slices.Compact(slices.Clone(verdicts))) == 1 {
		return verdicts[0]
	}
	return strings.Join(verdicts, " / ")
}

func tableHead(w *strings.Builder, names []string) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
}

// short formats v with about three significant digits.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.1 || a == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
