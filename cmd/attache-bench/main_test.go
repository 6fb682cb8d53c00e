package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary play the server and the relays, as the program
// does.
func TestMain(m *testing.M) {
	if status, ok := runMode(os.Args[1:]); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// testSubjects are the server alone, the relay of lines, and that relay in
// attache's place.
func testSubjects(t *testing.T) []subject {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process stays a second longer
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := subjects(self, "attache", t.TempDir(), os.Environ())
	standIn := all[1]
	standIn.Name = plain
	return []subject{all[0], all[1], standIn}
}

func tinyPlan() plan {
	return plan{
		Rounds: 2, Processes: 1, Starts: 1, Warm: 2, Calls: 5, Large: 1, Messages: 300, Window: 64,
		Budget: 100 * time.Millisecond, Timeout: 30 * time.Second,
	}
}

func needLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("measures on Linux only")
	}
}

func TestSmoke(t *testing.T) {
	needLinux(t)
	selected, err := selectParts(parts(), "start,*-200B,*-256KiB,pipelined,cpu,one-cpu")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(tinyPlan(), testSubjects(t), selected, io.Discard)
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := newReport(b, time.Second)
	for _, f := range r.failures {
		t.Errorf("%s, %s: %s", f.Subject, f.Part, f.Error)
	}
	for _, rr := range r.rows {
		for _, c := range rr.subjects {
			if none := c.value.none(); none != (rr.name == "cpu" && c.subject == direct) {
				t.Errorf("%s of %s: measured is %v", rr.name, c.subject, !none)
			}
			if !c.value.none() && c.value.Min <= 0 {
				t.Errorf("%s of %s: %v", rr.name, c.subject, c.value)
			}
		}
	}
	var out strings.Builder
	if err := r.write(&out); err != nil || !strings.Contains(out.String(), "| pipelined |") {
		t.Errorf("report: %v\n%s", err, out.String())
	}
}

// The floors over HTTP are measured in each direction, by rows that have a figure each.
func TestFloorsOverHTTP(t *testing.T) {
	needLinux(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process stays a second longer
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := subjects(self, self, t.TempDir(), os.Environ())
	floors, err := selectSubjects(all, floor)
	if err != nil {
		t.Fatal(err)
	}
	few := tinyPlan()
	few.Window = 4
	for _, part := range httpParts() {
		if !part.takes(floors[0]) { // its frames are longer than what floors hold
			part.rows[0].frame.Size = 9 * mib
		}
		v, err := part.measure(t.Context(), few, floors[0], part.rows)
		if err != nil {
			t.Errorf("%s: %v", part.name, err)
		}
		for _, r := range part.rows {
			if v[r.name] <= 0 {
				t.Errorf("%s: %v", r.name, v[r.name])
			}
		}
	}
}

// The memory part with frames that need not be as long as those of the program.
func TestMemory(t *testing.T) {
	needLinux(t)
	rows := []row{{name: "m", frame: frame{Size: 9 * mib}}}
	v, err := memory(t.Context(), tinyPlan(), testSubjects(t)[1], rows)
	if err != nil {
		t.Fatal(err)
	}
	if v["m"] < 9 {
		t.Errorf("a relay that holds lines peaked at %v MiB with lines of 9", v["m"])
	}
}

// A relay that only copies must not pass for one that fills and briefs, nor one
// that fills unasked for one that does not.
func TestSubjectThatDoesNotDoItsWorkFails(t *testing.T) {
	needLinux(t)
	s := testSubjects(t)[1]
	s.Fills, s.Briefs = true, true
	rows := frames(line, 200)
	if _, err := sequential(t.Context(), tinyPlan(), s, rows); err == nil || !strings.Contains(err.Error(), "no briefing") {
		t.Errorf("without a briefing: %v", err)
	}
	c, err := open(t.Context(), testSubjects(t)[1])
	if err != nil {
		t.Fatal(err)
	}
	c.subject.Fills = true
	if err := c.finish(); err == nil || !strings.Contains(err.Error(), "should have seen calls=1 filled=1") {
		t.Errorf("without filling: %v", err)
	}
	s = testSubjects(t)[0]
	s.Argv[2] = `"size"` // what stands for a filled workspace is in every call
	if _, err := sequential(t.Context(), tinyPlan(), s, rows); err == nil || !strings.Contains(err.Error(), "filled=0") {
		t.Errorf("filled unasked: %v", err)
	}
}

func TestFailureSaysWhatTheSubjectSaid(t *testing.T) {
	needLinux(t)
	s := testSubjects(t)[1]
	s.Argv = []string{s.Argv[0], modeLine}
	_, err := open(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "initialize: ") || !strings.Contains(err.Error(), "no command to relay to") {
		t.Errorf("got %v", err)
	}
	s.Argv = []string{"/nonexistent/attache"}
	if _, err := start(t.Context(), s); err == nil {
		t.Error("a program that is not there was started")
	}
	b := newBench(tinyPlan(), []subject{s}, parts()[:1], io.Discard)
	if err := b.run(t.Context()); err != nil || len(b.results.failures) != 1 {
		t.Errorf("got %v and %v, want one failure for all rounds", err, b.results.failures)
	}
}

func TestTimeoutEndsASubjectThatHangs(t *testing.T) {
	needLinux(t)
	s := testSubjects(t)[0]
	s.Argv = []string{"/bin/cat"} // what cat says first is no answer
	if _, err := open(t.Context(), s); err == nil {
		t.Error("an echo passed for a server")
	}
	s.Argv = []string{"/bin/sleep", "60"}
	p := tinyPlan()
	p.Timeout = 50 * time.Millisecond
	_, err := newBench(p, nil, nil, io.Discard).once(t.Context(), parts()[0], s)
	if !errors.Is(err, context.DeadlineExceeded) && (err == nil || !strings.Contains(err.Error(), "no end within 50ms")) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptLeavesWhatWasMeasured(t *testing.T) {
	needLinux(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := testSubjects(t)[:1]
	interrupting := part{name: "interrupt", processes: 1, measure: func(ctx context.Context, _ plan, _ subject, _ []row) (sample, error) {
		cancel()
		return nil, ctx.Err()
	}}
	b := newBench(tinyPlan(), s, []part{parts()[0], interrupting}, io.Discard)
	if err := b.run(ctx); !errors.Is(err, errInterrupted) {
		t.Errorf("got %v", err)
	}
	if c, ok := newReport(b, 0).cell("start", direct); !ok || c.value.none() || len(b.results.failures) > 0 {
		t.Errorf("what was measured: %v, failures: %v", c.value, b.results.failures)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-nope"}, "not defined: -nope"},
		{[]string{"-rounds", "-1"}, "give -rounds at least 1"},
		{[]string{"result-200B"}, "is no flag"},
		{[]string{"-only", "result-200B,speed"}, `"speed" names nothing`},
		{[]string{"-only", "["}, "names nothing"},
	} {
		err := run(t.Context(), test.args, io.Discard, io.Discard)
		if !errors.Is(err, errUsage) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got %v, want %q and a hint", test.args, err, test.want)
		}
	}
	err := run(t.Context(), []string{"-attache", "/nonexistent/attache"}, io.Discard, io.Discard)
	if err == nil || runtime.GOOS == "linux" && !strings.Contains(err.Error(), "-attache PATH") {
		t.Errorf("got %v, want a hint", err)
	}
	if runtime.GOOS != "linux" && !strings.Contains(err.Error(), "needs Linux") {
		t.Errorf("got %v, want what it needs", err)
	}
}

func TestHelpAndList(t *testing.T) {
	var stderr, stdout bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &stdout, &stderr); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	for _, want := range []string{"-only ROWS", "-attache PATH", "-quick", "-rounds"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("help lacks %s:\n%s", want, stderr.String())
		}
	}
	if err := run(t.Context(), []string{"-list", "-only", "memory-*"}, &stdout, &stderr); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"memory-32MiB", "memory-1GiB", filling} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("list lacks %s:\n%s", want, stdout.String())
		}
	}
	if strings.Contains(stdout.String(), "pipelined") {
		t.Errorf("list has a row that -only leaves out:\n%s", stdout.String())
	}
}

func TestRunModeLeavesFlagsAlone(t *testing.T) {
	for _, args := range [][]string{nil, {"-quick"}, {"server"}} {
		if _, ok := runMode(args); ok {
			t.Errorf("%q was taken for a mode", args)
		}
	}
}
