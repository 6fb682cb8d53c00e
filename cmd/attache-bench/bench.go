package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// errInterrupted is returned when the run was ended early. The results hold what
// was measured until then.
var errInterrupted = errors.New("interrupted: the report has only what was measured until then, so run it again for the rest")

// A bench is one run of the benchmark.
type bench struct {
	plan     plan
	subjects []subject
	parts    []part
	progress io.Writer
	results  *results
	// patience is how much longer this round may wait for a quiet machine.
	patience time.Duration
}

func newBench(p plan, subjects []subject, parts []part, progress io.Writer) *bench {
	return &bench{plan: p, subjects: subjects, parts: parts, progress: progress, results: newResults(p.Rounds)}
}

// run measures all parts of all subjects, round by round. It returns an error only
// if it was interrupted: the failures of subjects are in the results.
func (b *bench) run(ctx context.Context) error {
	for round := range b.plan.Rounds {
		b.patience = b.plan.Patience
		for _, p := range b.parts {
			fmt.Fprintf(b.progress, "round %d of %d: %s\n", round+1, b.plan.Rounds, p.name)
			if err := b.measurePart(ctx, round, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// measurePart measures one part in one round. The subjects take turns, a process
// each, and the order rotates so that no subject always runs after the same one.
func (b *bench) measurePart(ctx context.Context, round int, p part) error {
	for process := range min(p.processes, b.plan.Processes) {
		for i := range b.subjects {
			s := b.subjects[(i+process+round)%len(b.subjects)]
			if !p.includes(s) || b.results.failed(p, s) {
				continue
			}
			v, err := b.measureProcess(ctx, p, s)
			switch {
			case ctx.Err() != nil:
				return errInterrupted
			case err != nil:
				b.results.fail(p, s, err)
				fmt.Fprintf(b.progress, "  FAILED %s: %v\n", s.Name, err)
			default:
				b.results.add(round, s, v)
			}
		}
	}
	return nil
}

// measureProcess measures one process of a subject, when the machine is quiet or patience is used up.
func (b *bench) measureProcess(ctx context.Context, p part, s subject) (sample, error) {
	b.patience -= waitQuiet(ctx, min(b.plan.Quiet, b.patience))
	ctx, cancel := context.WithTimeout(ctx, b.plan.Timeout)
	defer cancel()
	v, err := p.measure(ctx, b.plan, s, p.rows)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no end within %v: %w", b.plan.Timeout, err)
	}
	return v, err
}

const (
	// quietShare is the share of the machine's CPU time that others may use
	// when a measurement begins.
	quietShare = 0.10
	// quietPeriod is how long that share is measured.
	quietPeriod = 200 * time.Millisecond
)

// waitQuiet waits until the machine is quiet, but no longer than limit, and returns
// how long it waited.
func waitQuiet(ctx context.Context, limit time.Duration) time.Duration {
	began := time.Now()
	for time.Since(began) < limit && ctx.Err() == nil {
		before := machine.Busy()
		time.Sleep(quietPeriod)
		busy := (machine.Busy() - before).Seconds() / quietPeriod.Seconds()
		if busy <= quietShare*float64(runtime.NumCPU()) {
			break
		}
	}
	return time.Since(began)
}
