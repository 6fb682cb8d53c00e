package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A report is what a run came to, in the shape in which -json writes it.
type report struct {
	Date     string        `json:"date"`
	System   string        `json:"system"`
	CPUs     int           `json:"cpus"`
	Go       string        `json:"go"`
	Seconds  float64       `json:"seconds"`
	Plan     plan          `json:"plan"`
	Noise    noise         `json:"noise"`
	Rows     []rowReport   `json:"rows"`
	Bounds   []boundReport `json:"bounds"`
	Failures []failure     `json:"failures"`
}

type rowReport struct {
	Row      string       `json:"row"`
	Unit     string       `json:"unit"`
	Against  string       `json:"against"`
	Subjects []cellReport `json:"subjects"`
	row      row
}

type cellReport struct {
	Subject  string     `json:"subject"`
	Rounds   []number   `json:"by_round"`
	Value    numbers    `json:"value"`
	Compared numbers    `json:"compared"`
	Raw      [][]number `json:"by_process"`
	value    summary
	compared summary
}

type boundReport struct {
	Row     string  `json:"row"`
	Figure  string  `json:"figure"`
	Subject string  `json:"subject"`
	AtLeast bool    `json:"at_least"`
	Limit   float64 `json:"limit"`
	Value   numbers `json:"value"`
	Verdict string  `json:"verdict"`
}

// A number is null in JSON where there is none.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

type numbers struct {
	Median number `json:"median"`
	Min    number `json:"min"`
	Max    number `json:"max"`
}

func (s summary) numbers() numbers { return numbers{number(s.Median), number(s.Min), number(s.Max)} }

func newReport(b *bench, took time.Duration) *report {
	r := &report{
		Date:   time.Now().UTC().Format("2006-01-02"),
		System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version(),
		Seconds: math.Round(took.Seconds()), Plan: b.plan, Noise: b.results.noise, Failures: b.results.failures,
	}
	for _, p := range b.parts {
		for _, row := range p.rows {
			r.Rows = append(r.Rows, newRowReport(b.results, row, b.subjects))
		}
	}
	for _, bd := range bounds() {
		for _, s := range measured()[:len(bd.limits)] {
			if c, ok := r.cell(bd.row, s); ok {
				r.Bounds = append(r.Bounds, boundReport{bd.row, bd.figure, s, bd.atLeast, bd.limit(s), c.compared.numbers(), bd.verdict(s, c.compared)})
			}
		}
	}
	return r
}

func newRowReport(from *results, of row, subjects []subject) rowReport {
	out := rowReport{Row: of.name, Unit: of.unit, Against: of.against(), row: of}
	for _, name := range subjectNames() {
		if !hasSubject(subjects, name) {
			continue
		}
		v := from.byRound(of.name, name)
		c := cellReport{Subject: name, value: summarize(v), compared: summarize(from.compared(of, name))}
		c.Rounds, c.Value, c.Compared = toNumbers(v), c.value.numbers(), c.compared.numbers()
		for _, processes := range from.values[cell{of.name, name}] {
			c.Raw = append(c.Raw, toNumbers(processes))
		}
		out.Subjects = append(out.Subjects, c)
	}
	return out
}

func hasSubject(subjects []subject, name string) bool {
	for _, s := range subjects {
		if s.Name == name {
			return true
		}
	}
	return false
}

func toNumbers(v []float64) []number {
	out := make([]number, len(v))
	for i, x := range v {
		out[i] = number(x)
	}
	return out
}

// cell returns what the subject has in the row, false if it was not measured.
func (r *report) cell(row, subject string) (cellReport, bool) {
	for _, rr := range r.Rows {
		for _, c := range rr.Subjects {
			if rr.Row == row && c.Subject == subject {
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
	r.failures(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *report) heading(b *strings.Builder) {
	fmt.Fprintf(b, "attache-bench, %s, %s, %d CPUs, %s, %d rounds interleaved in %.0f s\n\n", r.Date, r.System, r.CPUs, r.Go, r.Plan.Rounds, r.Seconds)
	n := r.Noise
	fmt.Fprintf(b, "%d measurements; %d made again because other processes used over %.0f%% of a CPU, %d kept although they did.\n\n", n.Slots, n.Again, foreignShare*100, n.Kept)
}

// figures prints what each subject did: the median over the rounds, the least
// and the most of them, and how it compares.
func (r *report) figures(b *strings.Builder) {
	if len(r.Rows) == 0 {
		return
	}
	names := []string{"row", "unit", "against"}
	for _, c := range r.Rows[0].Subjects {
		names = append(names, c.Subject)
	}
	tableHead(b, names)
	for _, rr := range r.Rows {
		fmt.Fprintf(b, "| %s | %s | %s |", rr.Row, rr.Unit, rr.Against)
		for _, c := range rr.Subjects {
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
	case of.ref == "" || of.ref == c.Subject || c.compared.none():
		return out
	case of.difference:
		return out + fmt.Sprintf(" **%+.2f**", c.compared.Median)
	}
	return out + " **" + short(c.compared.Median) + "x**"
}

// bounds prints how attache stands to the figures it has to reach.
func (r *report) bounds(b *strings.Builder) {
	if len(r.Bounds) == 0 {
		return
	}
	tableHead(b, []string{"figure", "bound", "default chain", "fill and briefing", "20 rules", "20 rules with CEL", "ok"})
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
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", bd.figure, bd.text(), strings.Join(figures, " | "), together(verdicts))
		}
	}
	b.WriteByte('\n')
}

// failures prints what the subjects could not do, once for all parts in which it
// was the same.
func (r *report) failures(b *strings.Builder) {
	parts := map[failure][]string{}
	var order []failure
	for _, f := range r.Failures {
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

func (r *report) writeJSON(name string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(b, '\n'), 0o644)
}
