package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		v    []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		in := slices.Clone(test.v)
		if got := median(test.v); got != test.want {
			t.Errorf("median(%v) = %v, want %v", test.v, got, test.want)
		}
		if !slices.Equal(in, test.v) {
			t.Errorf("median changed its argument to %v", test.v)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v", got)
	}
}

// Round 1 is twice as slow for all subjects, which must not change the ratio, and
// round 2 has no reference.
func TestComparedPairsByRound(t *testing.T) {
	r := newResults(4)
	add := func(round int, name string, values ...float64) {
		for _, v := range values {
			r.add(round, subject{Name: name}, sample{"p50": v})
		}
	}
	add(0, line, 10, 30, 20)
	add(0, plain, 10)
	add(1, line, 40)
	add(1, plain, 20)
	add(2, plain, 7)
	add(3, line, 10)
	add(3, plain, 8, 10)

	ratio := r.compared(row{name: "p50", ref: line}, plain)
	if want := (summary{Median: 0.5, Min: 0.5, Max: 0.9}); ratio != want {
		t.Errorf("ratio %v, want %v", ratio, want)
	}
	more := r.compared(row{name: "p50", ref: line, difference: true}, plain)
	if want := (summary{Median: -10, Min: -20, Max: -1}); more != want {
		t.Errorf("difference %v, want %v", more, want)
	}
	alone := r.compared(row{name: "p50"}, plain)
	if want := (summary{Median: 9.5, Min: 7, Max: 20}); alone != want {
		t.Errorf("no reference %v, want %v", alone, want)
	}
	if s := r.compared(row{name: "p50", ref: line}, bytecopy); !s.none() {
		t.Errorf("a subject that was not measured has %v", s)
	}
}

func TestVerdict(t *testing.T) {
	most := bound{limits: []float64{1, 1.1}}
	least := bound{atLeast: true, limits: []float64{1.05, 0.9}}
	for _, test := range []struct {
		b       bound
		subject string
		median  float64
		want    string
	}{
		{most, plain, 1, "yes"},
		{most, plain, 1.001, "no"},
		{most, withFill, 1.1, "yes"},
		{least, plain, 1.04, "no"},
		{least, plain, 1.05, "yes"},
		{least, withFill, 0.9, "yes"},
		{most, plain, math.NaN(), "-"},
		{most, withRules, 1, "-"}, // it has no bound
		{most, line, 1, "-"},
	} {
		if got := test.b.verdict(test.subject, summary{Median: test.median}); got != test.want {
			t.Errorf("%v against %s of %s: %s, want %s", test.median, test.b.text(""), test.subject, got, test.want)
		}
	}
	if got := joinVerdicts([]string{"yes", "no", "yes"}); got != "yes / no / yes" {
		t.Errorf("got %q", got)
	}
	if got := joinVerdicts([]string{"no", "no"}); got != "no" {
		t.Errorf("got %q", got)
	}
}

func TestRowsBoundsAndSubjectsMatch(t *testing.T) {
	var names []string
	for _, s := range subjects("", "", "", nil) {
		names = append(names, s.Name)
		if s.What == "" {
			t.Errorf("no description of %s", s.Name)
		}
	}
	rows := map[string]bool{}
	for _, p := range parts() {
		if p.processes < 1 {
			t.Errorf("%s is not measured", p.name)
		}
		for _, r := range p.rows {
			if rows[r.name] {
				t.Errorf("two rows %s", r.name)
			}
			rows[r.name] = true
			if r.ref != "" && (!slices.Contains(names, r.ref) || slices.Contains(p.exclude, r.ref)) {
				t.Errorf("%s is compared with %q, which is not measured", r.name, r.ref)
			}
		}
	}
	for name := range bounds() {
		if !rows[name] {
			t.Errorf("a bound for %s, and there is no such row", name)
		}
	}
}

func TestSamples(t *testing.T) {
	p := options{}.plan()
	sizes := []int{200, 4 * kib, 256 * kib, 4 * mib, 32 * mib}
	for i := 1; i < len(sizes); i++ {
		if p.samples(sizes[i]) > p.samples(sizes[i-1]) || p.samples(sizes[i]) < 2 {
			t.Errorf("%d samples of %d bytes", p.samples(sizes[i]), sizes[i])
		}
	}
}

func TestSelectParts(t *testing.T) {
	all := parts()
	got, err := selectParts(all, "result-*, cpu")
	check(t, err)
	var names []string
	for _, p := range got {
		for _, r := range p.rows {
			names = append(names, r.name)
		}
	}
	want := []string{"result-200B", "result-4KiB", "result-256KiB", "result-4MiB", "result-32MiB", "cpu"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if n := len(all[1].rows); n != 4 {
		t.Errorf("selecting changed the parts: %d rows left", n)
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int]string{200: "200B", 4096: "4KiB", 32 << 20: "32MiB", 1 << 30: "1GiB"} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestCleanEnv(t *testing.T) {
	got := cleanEnv([]string{"PATH=/bin", "ATTACHE_CONFIG=x", "CLAUDE_PROJECT_DIR=y", "XDG_CONFIG_HOME=z", "XDG_STATE_HOME=z", "HOME=/h"}, "/empty")
	if want := []string{"PATH=/bin", "HOME=/h", "XDG_CONFIG_HOME=/empty", "XDG_STATE_HOME=/empty"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSubjects(t *testing.T) {
	for _, s := range subjects("/self", "/attache", "/run dir", nil) {
		if got := s.Argv[len(s.Argv)-3:]; !slices.Equal(got, []string{"/self", modeServer, `"workspace":"/run dir/workspace"`}) {
			t.Errorf("%s does not end in the server: %q", s.Name, s.Argv)
		}
		if has := slices.Contains(s.Env, "ATTACHE_WORKSPACE=/run dir/workspace") || slices.Contains(s.Argv, "--workspace"); has != s.Fills {
			t.Errorf("%s has a workspace is %v", s.Name, has)
		}
	}
}

func TestSelectSubjects(t *testing.T) {
	all := []subject{{Name: line}, {Name: plain}, {Name: withFill}}
	for who, want := range map[string]int{"": 3, "line": 1, "line,attache*": 3, "attache": 1, "attache+*": 1, "nobody": -1} {
		got, err := selectSubjects(all, who)
		if (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%q: %v, %v", who, got, err)
		}
	}
}

func TestReport(t *testing.T) {
	b := newBench(plan{Rounds: 2}, []subject{{Name: line}, {Name: plain}, {Name: withFill}}, parts()[:2], nil)
	for round, v := range []float64{20, 40} {
		b.results.add(round, subject{Name: line}, sample{"start": 2, "result-200B": v})
		b.results.add(round, subject{Name: plain}, sample{"start": 5.5, "result-200B": v * 0.9})
	}
	for _, p := range b.parts {
		b.results.fail(p, subject{Name: withFill}, errFailed)
	}
	out := b.report(time.Minute)
	for _, want := range []string{
		"2 rounds interleaved in 60 s",
		"| row | unit | against | line | attache | attache+fill |\n|---|---|---|---|---|---|\n",
		"| start | ms | minus line | 2.00 (2.00-2.00) | 5.50 (5.50-5.50) **+3.50** | - |\n",
		"| result-200B | µs | by line | 30.0 (20.0-40.0) | 27.0 (18.0-36.0) **0.90x** | - |\n",
		"| result-200B by line | at most 1 / 1.1 / 1.3 / 1.3 | 0.90 (0.90 to 0.90) | - |  |  | yes / - |\n",
		"| start minus line | at most 6 / 8 / 8 / 12 ms | 3.50 (3.50 to 3.50) | - |  |  | yes / - |\n",
		"- FAILED: attache+fill (start, small calls): a subject failed",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "32MiB") {
		t.Errorf("the report has a bound of a row that was left out:\n%s", out)
	}
}
