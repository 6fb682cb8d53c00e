package main

import (
	"context"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// startUps measures the time to the first answer.
func startUps(ctx context.Context, p plan, s subject, rows []row) (sample, error) {
	var ms []float64
	for range p.Starts {
		c, err := start(ctx, s)
		if err != nil {
			return nil, err
		}
		ms = append(ms, c.firstAnswer.Seconds()*1e3)
		c.stop()
	}
	return sample{rows[0].name: median(ms)}, nil
}

// sequential measures the p50 of calls that wait for each other.
func sequential(ctx context.Context, p plan, s subject, rows []row) (sample, error) {
	c, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	out := sample{}
	for _, r := range rows {
		us, err := c.times(p, r.frame)
		if err != nil {
			return nil, c.fail(r.name, err)
		}
		out[r.name] = median(us)
	}
	return out, c.finish()
}

// times returns the times of calls in microseconds. The first do not count: in
// them buffers grow.
func (c *session) times(p plan, f frame) ([]float64, error) {
	warm := p.Warm
	if f.Size >= 256*kib {
		warm = 1
	}
	for range warm {
		if _, err := c.time(f); err != nil {
			return nil, err
		}
	}
	var us []float64
	for began := time.Now(); len(us) < p.samples(f.Size); {
		if len(us) >= 2 && time.Since(began) > p.Budget {
			break // a slow subject gives fewer
		}
		d, err := c.time(f)
		if err != nil {
			return nil, err
		}
		us = append(us, d.Seconds()*1e6)
	}
	return us, nil
}

// pipelined measures calls a second, and what they cost the proxy in CPU.
func pipelined(ctx context.Context, p plan, s subject, rows []row) (sample, error) {
	c, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	for range p.Warm {
		if _, err := c.time(rows[0].frame); err != nil {
			return nil, c.fail("warming up", err)
		}
	}
	before, err := machine.CPUTime(c.cmd.Process.Pid)
	if err != nil {
		return nil, c.fail("reading its CPU clock", err)
	}
	took, err := c.pipeline(p.Messages, p.Window, rows[0].frame)
	if err != nil {
		return nil, c.fail("pipelined", err)
	}
	after, err := machine.CPUTime(c.cmd.Process.Pid)
	if err != nil {
		return nil, c.fail("reading its CPU clock", err)
	}
	out := sample{}
	for _, r := range rows {
		switch {
		case r.name == "pipelined":
			out[r.name] = float64(p.Messages) / took.Seconds()
		case s.Name != direct:
			out[r.name] = (after - before).Seconds() * 1e5 / float64(p.Messages)
		}
	}
	return out, c.finish()
}

// memory measures the peak of resident memory after long frames both ways. Those
// that the client may hold come twice.
func memory(ctx context.Context, _ plan, s subject, rows []row) (sample, error) {
	c, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	size := rows[0].frame.Size
	both := []frame{{Size: size}, {Size: size, Args: true}}
	if size < kept {
		both = append(both, both...)
	}
	for _, f := range both {
		if err := c.pour(f); err != nil {
			return nil, c.fail(f.String(), err)
		}
	}
	peak, err := machine.PeakResident(c.cmd.Process.Pid)
	if err != nil {
		return nil, c.fail("reading its peak memory", err)
	}
	return sample{rows[0].name: peak / mib}, c.finish()
}

// onOneCPU measures small calls with everything on one CPU: the subject, its
// server and the client, which is this program started again for the purpose.
func onOneCPU(ctx context.Context, p plan, s subject, rows []row) (sample, error) {
	v, err := measureThere(ctx, job{Plan: p, Subject: s, Frame: rows[0].frame})
	return sample{rows[0].name: v}, err
}
