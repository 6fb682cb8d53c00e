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

	"github.com/attache-mcp/attache/internal/testkit"
)

// TestMain lets the test binary be the server and the relays, like the program.
func TestMain(m *testing.M) {
	if status, ok := runMode(os.Args[1:]); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// testSubjects returns the server alone, the relay of lines, and that relay in place of attache.
func testSubjects(t *testing.T) []subject {
	t.Helper()
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process stays a second longer
	self, err := os.Executable()
	check(t, err)
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
	check(t, err)
	b := newBench(tinyPlan(), testSubjects(t), selected, io.Discard)
	check(t, b.run(t.Context()))
	for _, f := range b.results.failures {
		t.Errorf("%s, %s: %s", f.subject, f.parts, f.text)
	}
	for _, r := range b.rows() {
		for _, s := range b.subjects {
			v := b.results.measured(r.name, s.Name)
			if none := v.none(); none != (r.name == "cpu" && s.Name == direct) {
				t.Errorf("%s of %s: measured is %v", r.name, s.Name, !none)
			}
			if !v.none() && v.Min <= 0 {
				t.Errorf("%s of %s: %v", r.name, s.Name, v)
			}
		}
	}
	if out := b.report(time.Second); !strings.Contains(out, "| pipelined |") {
		t.Errorf("report:\n%s", out)
	}
}

// The floors over HTTP give a figure for each row in each direction.
func TestFloorsOverHTTP(t *testing.T) {
	needLinux(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0") // or each process stays a second longer
	self, err := os.Executable()
	check(t, err)
	all := subjects(self, self, t.TempDir(), os.Environ())
	floors, err := selectSubjects(all, floor)
	check(t, err)
	few := tinyPlan()
	few.Window = 4
	for _, part := range httpParts() {
		if !part.includes(floors[0]) { // its frames are longer than floors hold
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

// The memory part, with shorter frames than the program sends.
func TestMemory(t *testing.T) {
	needLinux(t)
	rows := []row{{name: "m", frame: frame{Size: 9 * mib}}}
	v, err := memory(t.Context(), tinyPlan(), testSubjects(t)[1], rows)
	check(t, err)
	if v["m"] < 9 {
		t.Errorf("a relay that holds lines peaked at %v MiB with lines of 9", v["m"])
	}
}

// A relay that only copies must fail as a subject that fills and briefs, and one that
// fills must fail as a subject that does not.
func TestWrongSubjectFails(t *testing.T) {
	needLinux(t)
	s := testSubjects(t)[1]
	s.Fills, s.Briefs = true, true
	rows := frames(line, 200)
	if _, err := sequential(t.Context(), tinyPlan(), s, rows); err == nil || !strings.Contains(err.Error(), "no briefing") {
		t.Errorf("without a briefing: %v", err)
	}
	c, err := open(t.Context(), testSubjects(t)[1])
	check(t, err)
	c.subject.Fills = true
	if err := c.finish(); err == nil || !strings.Contains(err.Error(), "should have seen calls=1 filled=1") {
		t.Errorf("without filling: %v", err)
	}
	s = testSubjects(t)[0]
	s.Argv[2] = `"size"` // every call has this, so the server takes every call for filled
	if _, err := sequential(t.Context(), tinyPlan(), s, rows); err == nil || !strings.Contains(err.Error(), "filled=0") {
		t.Errorf("filled without a rule: %v", err)
	}
}

func TestFailureHasStderr(t *testing.T) {
	needLinux(t)
	s := testSubjects(t)[1]
	s.Argv = []string{s.Argv[0], modeLine}
	_, err := open(t.Context(), s)
	if err == nil || !strings.Contains(err.Error(), "initialize: ") || !strings.Contains(err.Error(), "no command to relay to") {
		t.Errorf("got %v", err)
	}
	s.Argv = []string{"/nonexistent/attache"}
	if _, err := start(t.Context(), s); err == nil {
		t.Error("a program that does not exist was started")
	}
	b := newBench(tinyPlan(), []subject{s}, parts()[:1], io.Discard)
	if err := b.run(t.Context()); err != nil || len(b.results.failures) != 1 {
		t.Errorf("got %v and %v, want one failure for all rounds", err, b.results.failures)
	}
}

func TestTimeout(t *testing.T) {
	needLinux(t)
	s := testSubjects(t)[0]
	s.Argv = []string{"/bin/cat"} // which returns the request as its answer
	if _, err := open(t.Context(), s); err == nil {
		t.Error("an echo was accepted as an answer")
	}
	s.Argv = []string{"/bin/sleep", "60"}
	p := tinyPlan()
	p.Timeout = 50 * time.Millisecond
	_, err := newBench(p, nil, nil, io.Discard).measureProcess(t.Context(), parts()[0], s)
	if !errors.Is(err, context.DeadlineExceeded) && (err == nil || !strings.Contains(err.Error(), "no end within 50ms")) {
		t.Errorf("got %v", err)
	}
}

func TestInterruptKeepsResults(t *testing.T) {
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
	if v := b.results.measured("start", direct); v.none() || len(b.results.failures) > 0 {
		t.Errorf("measured %v, failures: %v", v, b.results.failures)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-nope"}, "not defined: -nope"},
		{[]string{"-rounds", "0"}, "give -rounds at least 1"},
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
		t.Errorf("got %v, want the need for Linux", err)
	}
}

func TestHelpAndList(t *testing.T) {
	var stderr, stdout bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &stdout, &stderr); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
	for _, want := range []string{"-only ROWS", "-attache PATH", "-rounds"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("help lacks %s:\n%s", want, stderr.String())
		}
	}
	check(t, run(t.Context(), []string{"-list", "-only", "memory-*"}, &stdout, &stderr))
	for _, want := range []string{"memory-32MiB", "memory-1GiB", withFill} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("list lacks %s:\n%s", want, stdout.String())
		}
	}
	if strings.Contains(stdout.String(), "pipelined") {
		t.Errorf("list has a row that -only leaves out:\n%s", stdout.String())
	}
}

func TestRunModeLeavesFlagsAlone(t *testing.T) {
	for _, args := range [][]string{nil, {"-list"}, {"server"}} {
		if _, ok := runMode(args); ok {
			t.Errorf("%q was taken for a mode", args)
		}
	}
}

var check = testkit.Check
