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
		if out[r.name], err = c.p50(p, r.frame); err != nil {
			return nil, c.check(r.name, err)
		}
	}
	return out, c.finish()
}

// p50 returns the median time of calls in microseconds. The first calls do not count,
// because buffers grow in them.
func (c *session) p50(p plan, f frame) (float64, error) {
	warm := p.Warm
	if f.Size >= 256*kib {
		warm = 1
	}
	if err := c.repeat(warm, f); err != nil {
		return 0, err
	}
	var us []float64
	for began := time.Now(); len(us) < p.samples(f.Size); {
		if len(us) >= 2 && time.Since(began) > p.Budget {
			break // a slow subject gives fewer samples
		}
		d, err := c.timeCall(f)
		if err != nil {
			return 0, err
		}
		us = append(us, d.Seconds()*1e6)
	}
	return median(us), nil
}

// repeat makes n calls, one after the other.
func (c *session) repeat(n int, f frame) error {
	for range n {
		if _, err := c.timeCall(f); err != nil {
			return err
		}
	}
	return nil
}

// pipelined measures calls a second, and the CPU time of the proxy for them.
func pipelined(ctx context.Context, p plan, s subject, rows []row) (sample, error) {
	c, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	f := rows[0].frame
	if err := c.repeat(p.Warm, f); err != nil {
		return nil, c.check("warming up", err)
	}
	var took time.Duration
	cpu, err := cpuTime(c.cmd.Process.Pid, func() (err error) {
		took, err = c.pipeline(p.Messages, p.Window, f)
		return err
	})
	if err != nil {
		return nil, c.check("pipelined", err)
	}
	out := sample{}
	for _, r := range rows {
		switch {
		case r.name == "pipelined":
			out[r.name] = float64(p.Messages) / took.Seconds()
		case s.Name != direct:
			out[r.name] = cpu.Seconds() * 1e5 / float64(p.Messages)
		}
	}
	return out, c.finish()
}

// cpuTime returns the CPU time of a process while f runs.
func cpuTime(pid int, f func() error) (time.Duration, error) {
	before, err := machine.CPUTime(pid)
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := machine.CPUTime(pid)
	return after - before, err
}

// memory measures the peak of resident memory after long frames in both directions. It
// sends frames that the client may hold twice.
func memory(ctx context.Context, _ plan, s subject, rows []row) (sample, error) {
	c, err := open(ctx, s)
	if err != nil {
		return nil, err
	}
	size := rows[0].frame.Size
	both := []frame{{Size: size}, {Size: size, Args: true}}
	if size < maxLine {
		both = append(both, both...)
	}
	for _, f := range both {
		if err := c.streamCall(f); err != nil {
			return nil, c.check(f.String(), err)
		}
	}
	peak, err := machine.PeakResident(c.cmd.Process.Pid)
	if err != nil {
		return nil, c.check("reading its peak memory", err)
	}
	return sample{rows[0].name: peak / mib}, c.finish()
}

// onOneCPU measures small calls with the subject, its server and the client on one CPU.
func onOneCPU(ctx context.Context, p plan, s subject, rows []row) (sample, error) {
	var v sample
	err := machine.OnOneCPU(func() (err error) {
		v, err = sequential(ctx, p, s, rows)
		return err
	})
	return v, err
}
