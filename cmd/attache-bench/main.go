// Command attache-bench measures what attache costs a session, in one run with
// the relays it is compared with:
//
//	go run ./cmd/attache-bench [-only ROWS] [-rounds N] [-attache PATH]
//
// It starts a server of its own, alone and behind each relay, acts as its client,
// and prints two tables: the figures of each subject, and the figures of attache
// beside its bounds. Absolute figures depend on the machine and change from minute
// to minute, but ratios hold from run to run. So each figure is compared with one
// of the same round, and the median over the rounds counts.
//
// The subjects are the server alone, a relay of lines, a copy of bytes, attache
// without a configuration, and attache with a fill rule and a briefing or with
// twenty rules. For HTTP, a bridge replaces the relays. Server, relays and bridge
// are this program, started again with a hidden first argument. The client checks
// every answer, that the rule filled every call, and that the briefing arrived. A
// subject that fails a check is reported and the exit status is 1. A bound that is
// missed is no failure: its row says so.
//
// Other processes on the machine disturb the figures, so the benchmark waits before each
// measurement for the machine to be quiet.
//
// With -soak TIME it runs package soak instead, which checks answers and looks for leaks. With
// -load TIME it runs package load, which measures a database that many machines share.
//
// It needs Linux, for /proc and the CPU clocks of processes. The module's own
// benchmarks (go test -bench) measure single functions; this one measures
// processes from outside.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/load"
	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
	"github.com/attache-mcp/attache/cmd/attache-bench/internal/soak"
)

func main() {
	if status, ok := runMode(os.Args[1:]); ok {
		os.Exit(status)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "attache-bench:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

// errFailed is returned when a subject gave a wrong answer or none. The report
// has been printed and names the subject.
var errFailed = errors.New("a subject failed: see the lines marked FAILED above")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	parts, err := selectParts(parts(), o.only)
	if err != nil {
		return err
	}
	if o.list {
		return list(stdout, parts)
	}
	if err := machine.Supported(); err != nil {
		return err
	}
	if o.load.Duration > 0 {
		o.load.Attaches, o.load.Fronts, o.load.Step, o.load.Out, o.load.Log = 1000, 10, 20*time.Second, stdout, stderr
		return load.Run(ctx, o.load)
	}
	dir, err := os.MkdirTemp("", "attache-bench")
	if err != nil {
		return fmt.Errorf("make a folder for the run: %w; set TMPDIR to one that can be written", err)
	}
	defer os.RemoveAll(dir)
	subjects, err := prepare(ctx, dir, o.attache, stderr)
	if err != nil {
		return err
	}
	if o.soak.Duration > 0 {
		s := subjects[slices.IndexFunc(subjects, func(s subject) bool { return s.Name == plain })]
		o.soak.Attache, o.soak.Env, o.soak.Out, o.soak.Log = s.Argv[0], s.Env, stdout, stderr
		return soak.Run(ctx, o.soak)
	}
	if subjects, err = selectSubjects(subjects, o.who); err != nil {
		return err
	}
	b := newBench(o.plan(), subjects, parts, stderr)
	began := time.Now()
	interrupted := b.run(ctx)
	if _, err := io.WriteString(stdout, b.report(time.Since(began))); err != nil {
		return fmt.Errorf("write the report: %w; give a stdout that takes it", err)
	}
	if interrupted == nil && len(b.results.failures) > 0 {
		return errFailed
	}
	return interrupted
}
