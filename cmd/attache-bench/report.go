package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A report is what a run came to.
type report struct {
	date     string
	took     time.Duration
	rounds   int
	rows     []rowReport
	failures []failure
}

type rowReport struct {
	row
	subjects []cellReport
}

// A cellReport is what one subject has in one row.
type cellReport struct {
	subject         string
	value, compared summary
}

func newReport(b *bench, took time.Duration) *report {
	r := &report{
		date: time.Now().UTC().Format("2006-01-02"), took: took, rounds: b.plan.Rounds,
		failures: b.results.failures,
	}
	for _, p := range b.parts {
		for _, row := range p.rows {
			rr := rowReport{row: row}
			for _, name := range subjectNames() {
				if slices.ContainsFunc(b.subjects, func(s subject) bool { return s.Name == name }) {
					rr.subjects = append(rr.subjects, cellReport{name, summarize(b.results.byRound(row.name, name)), summarize(b.results.compared(row, name))})
				}
			}
			r.rows = append(r.rows, rr)
		}
	}
	return r
}

// cell returns what the subject has in the row, false if it was not measured.
func (r *report) cell(row, subject string) (cellReport, bool) {
	for _, rr := range r.rows {
		for _, c := range rr.subjects {
			if rr.name == row && c.subject == subject {
				return c, true
			}
		}
	}
	return cellReport{}, false
}

// write prints the report as Markdown.
func (r *report) write(w io.Writer) error {
	var b strings.Builder
	r.heading(&b)
	r.figures(&b)
	r.bounds(&b)
	r.reportFailures(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *report) heading(b *strings.Builder) {
	fmt.Fprintf(b, "attache-bench, %s, %s, %d CPUs, %s, %d rounds interleaved in %.0f s\n\n", r.date, runtime.GOOS+"/"+runtime.GOARCH, runtime.NumCPU(), runtime.Version(), r.rounds, r.took.Seconds())
}

// figures prints what each subject did: the median over the rounds, the least
// and the most of them, and how it compares.
func (r *report) figures(b *strings.Builder) {
	if len(r.rows) == 0 {
		return
	}
	names := []string{"row", "unit", "against"}
	for _, c := range r.rows[0].subjects {
		names = append(names, c.subject)
	}
	tableHead(b, names)
	for _, rr := range r.rows {
		fmt.Fprintf(b, "| %s | %s | %s |", rr.name, rr.unit, rr.against())
		for _, c := range rr.subjects {
			fmt.Fprintf(b, " %s |", c.text(rr.row))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

// text is a cell: 17.2 (15.9-19.0) 0.86x.
func (c cellReport) text(of row) string {
	if c.value.none() {
		return "-"
	}
	out := fmt.Sprintf("%s (%s-%s)", short(c.value.Median), short(c.value.Min), short(c.value.Max))
	switch {
	case of.ref == "" || of.ref == c.subject || c.compared.none():
		return out
	case of.difference:
		return out + fmt.Sprintf(" **%+.2f**", c.compared.Median)
	}
	return out + " **" + short(c.compared.Median) + "x**"
}

// bounds prints how attache stands to the figures it has to reach.
func (r *report) bounds(b *strings.Builder) {
	var lines []string
	for _, bd := range bounds() {
		var figures, verdicts []string
		for _, s := range measured() {
			c, ok := r.cell(bd.row, s)
			if !ok || math.IsNaN(bd.limit(s)) {
				figures = append(figures, "")
				continue
			}
			figures = append(figures, bd.figureText(c.compared))
			verdicts = append(verdicts, bd.verdict(s, c.compared))
		}
		if verdicts != nil {
			lines = append(lines, fmt.Sprintf("| %s | %s | %s | %s |\n", bd.figure, bd.text(), strings.Join(figures, " | "), together(verdicts)))
		}
	}
	if lines != nil {
		tableHead(b, []string{"figure", "bound", "default chain", "fill and briefing", "20 rules", "20 rules with CEL", "ok"})
		b.WriteString(strings.Join(lines, "") + "\n")
	}
}

// reportFailures prints what the subjects could not do, once for all parts in which it
// was the same.
func (r *report) reportFailures(b *strings.Builder) {
	parts := map[failure][]string{}
	var order []failure
	for _, f := range r.failures {
		same := failure{Subject: f.Subject, Error: f.Error}
		if parts[same] == nil {
			order = append(order, same)
		}
		parts[same] = append(parts[same], f.Part)
	}
	for _, f := range order {
		fmt.Fprintf(b, "- FAILED: %s (%s): %s\n", f.Subject, strings.Join(parts[f], ", "), f.Error)
	}
}

func (b bound) text() string {
	word := "at most"
	if b.atLeast {
		word = "at least"
	}
	var limits []string
	for _, l := range b.limits {
		limits = append(limits, trim(l))
	}
	return strings.TrimSpace(word + " " + strings.Join(limits, " / ") + " " + b.unit)
}

func (b bound) figureText(s summary) string {
	if s.none() {
		return "-"
	}
	return fmt.Sprintf("%s (%s to %s)", short(s.Median), short(s.Min), short(s.Max))
}

// together is one word for verdicts that agree.
func together(verdicts []string) string {
	if len(slices.Compact(slices.Clone(verdicts))) == 1 {
		return verdicts[0]
	}
	return strings.Join(verdicts, " / ")
}

func tableHead(b *strings.Builder, names []string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
}

// short writes three digits or so.
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

func trim(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
