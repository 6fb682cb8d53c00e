package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// errInterrupted is returned when the run was ended early. What was measured
// until then is in the results.
var errInterrupted = errors.New("interrupted: the report has only what was measured until then, so run it again for the rest")

// A bench is one run.
type bench struct {
	plan     plan
	subjects []subject
	parts    []part
	progress io.Writer
	results  *results
	// patience is what is left of the plan's in this round.
	patience time.Duration
}

func newBench(p plan, subjects []subject, parts []part, progress io.Writer) *bench {
	return &bench{plan: p, subjects: subjects, parts: parts, progress: progress, results: newResults(p.Rounds)}
}

// run measures all parts of all subjects, round by round. Its error is that of
// the run: what a subject cannot do is in the results.
func (b *bench) run(ctx context.Context) error {
	for round := range b.plan.Rounds {
		b.patience = b.plan.Patience
		for _, p := range b.parts {
			fmt.Fprintf(b.progress, "round %d of %d: %s\n", round+1, b.plan.Rounds, p.name)
			if err := b.part(ctx, round, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// part measures one part of a round. The processes of the subjects take turns,
// in an order that moves on, so that none always follows the same other.
func (b *bench) part(ctx context.Context, round int, p part) error {
	for process := range min(p.processes, b.plan.Processes) {
		for i := range b.subjects {
			s := b.subjects[(i+process+round)%len(b.subjects)]
			if !p.takes(s) || b.results.failed(p, s) {
				continue
			}
			v, err := b.once(ctx, p, s)
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

// once measures one process of a subject, when the machine is quiet or there is no patience left.
func (b *bench) once(ctx context.Context, p part, s subject) (sample, error) {
	b.patience -= waitQuiet(ctx, min(b.plan.Quiet, b.patience))
	ctx, cancel := context.WithTimeout(ctx, b.plan.Timeout)
	defer cancel()
	v, err := p.measure(ctx, b.plan, s, p.rows)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("no end within %v: %w", b.plan.Timeout, err)
	}
	return v, err
}
