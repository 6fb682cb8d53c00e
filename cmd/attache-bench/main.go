// Command attache-bench measures what attache costs a session, in one run with
// the relays it is compared with:
//
//	go run ./cmd/attache-bench [-quick] [-only ROWS] [-rounds N] [-attache PATH]
//
// It starts a server of its own, alone and behind each relay, is its client,
// and prints two tables: what each did, and how attache stands to its bounds.
// The absolute figures belong to the machine and the minute; the ratios hold
// from run to run, so a figure is set against another of the same round and the
// median over the rounds is what counts.
//
// The subjects are the server alone, a relay of lines, a copy of bytes,
// attache as it comes, and attache with a fill rule and a briefing or with twenty
// rules. Where HTTP is spoken on a side, a bridge stands for the relays. Server, relays
// and bridge are this program, started
// again with a hidden first argument. Every answer is checked, and so is that
// the rule filled every call and that the briefing came: a subject that cheats
// or fails is reported and the exit status is 1. A bound that is missed is not
// a failure, it is a row that says so.
//
// Other processes on the machine disturb the figures, so the benchmark waits before each
// measurement for the machine to be quiet.
//
// With -soak TIME it measures nothing but what is left: see package soak. With -load TIME it
// measures a database that many machines share: see package load.
//
// It needs Linux, for /proc and the CPU clocks of processes. The module's own
// benchmarks (go test -bench) look at single functions; this one looks at
// processes, from outside.
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
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "attache-bench:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "attache-bench:", err)
		os.Exit(1)
	}
}

// errFailed is returned when a subject gave a wrong answer or none. The report
// was printed and says which.
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
		o.load.Attaches, o.load.Fronts, o.load.Step, o.load.Getenv, o.load.Out, o.load.Log = 1000, 10, 20*time.Second, os.Getenv, stdout, stderr
		return load.Run(ctx, o.load)
	}
	subjects, remove, err := prepare(ctx, o.attache, stderr)
	if err != nil {
		return err
	}
	defer remove()
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
	r := newReport(b, time.Since(began))
	if err := r.write(stdout); err != nil {
		return fmt.Errorf("write the report: %w; give a stdout that takes it", err)
	}
	if interrupted == nil && len(r.failures) > 0 {
		return errFailed
	}
	return interrupted
}
