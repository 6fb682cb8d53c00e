package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

const (
	// manyNotes is how many notifications come at once.
	manyNotes = 4000
	// notePause is how far, in milliseconds, the second notification is behind the first
	// where the delay of that one is measured.
	notePause = 200
	// openers is how many clients open and end sessions at once.
	openers = 4
	// stillness is how long nothing happens before the memory of idle sessions is measured.
	stillness = 2 * time.Second
)

// streamRows are the rows of a direction that are not about calls with one answer.
func (d direction) streamRows() []row {
	at := string(d) + "-"
	rows := []row{
		{name: at + "progress", unit: "msg/s", ref: floor, what: "progress notifications a second, 4,000 in one call"},
		{name: at + "first", unit: "ms", what: "delay of a notification, the next 200 ms behind it"},
	}
	if d != stdioToHTTP {
		rows = append(rows, row{name: at + "sessions", unit: "1/s", ref: floor, what: "sessions opened and ended a second, 4 at once"})
	}
	return rows
}

// idlePart measures the memory of sessions that do nothing, each with a stream open.
func (d direction) idlePart(sessions int) part {
	at := string(d) + "-idle"
	return part{
		name: at, processes: 1, leaves: []string{direct, line, bytecopy, floor},
		rows: []row{
			{name: at, unit: "MiB", what: fmt.Sprintf("resident with %d idle sessions, each with a stream open", sessions)},
			{name: at + "-session", unit: "KiB", what: "resident for one of them"},
		},
		measure: func(ctx context.Context, p plan, s subject, _ []row) (sample, error) {
			return d.idle(ctx, s, at, min(sessions, p.Messages))
		},
	}
}

// streams measures the rows of streamRows that are wanted.
func (b *bed) streams(ctx context.Context, p plan, c *session, rows []row, out sample) error {
	for _, r := range rows {
		var err error
		switch r.name {
		case string(b.dir) + "-progress":
			out[r.name], err = c.notesPerSecond(p)
		case string(b.dir) + "-first":
			out[r.name], err = c.noteDelay()
		case string(b.dir) + "-sessions":
			out[r.name], err = b.sessionsPerSecond(ctx, p)
		}
		if err != nil {
			return c.fail(r.name, err)
		}
	}
	return nil
}

func (c *session) notesPerSecond(p plan) (float64, error) {
	n, took := 0, time.Duration(0)
	for took < p.Budget/2 {
		_, all, err := c.notes(manyNotes, 0)
		if err != nil {
			return 0, err
		}
		n, took = n+manyNotes, took+all
	}
	return float64(n) / took.Seconds(), nil
}

// noteDelay returns the median of a few, in milliseconds.
func (c *session) noteDelay() (float64, error) {
	var ms []float64
	for range 5 {
		first, _, err := c.notes(2, notePause)
		if err != nil {
			return 0, err
		}
		ms = append(ms, first.Seconds()*1e3)
	}
	return median(ms), nil
}

// notes makes a call that n notifications come with, and returns when the first of them and
// the answer were there.
func (c *session) notes(n, pause int) (first, all time.Duration, err error) {
	c.id++
	sent := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"notes","arguments":{"count":%d,"pause":%d},"_meta":{"progressToken":%d}}}`+"\n", c.id, n, pause, c.id)
		sent <- err
	}()
	for came := 0; ; came++ {
		b, err := c.out.ReadSlice('\n')
		switch {
		case err != nil:
			return 0, 0, errors.Join(err, <-sent)
		case bytes.Contains(b, []byte(`"notifications/progress"`)):
			if came == 0 {
				first = time.Since(began)
			}
			continue
		case came != n:
			err = fmt.Errorf("%d notifications came and not %d", came, n)
		default:
			err = checkText(b, c.id, 0)
		}
		return first, time.Since(began), errors.Join(err, <-sent)
	}
}

// sessionsPerSecond opens and ends sessions.
func (b *bed) sessionsPerSecond(ctx context.Context, p plan) (float64, error) {
	var n atomic.Int64
	errs := make([]error, openers)
	began := time.Now()
	var all sync.WaitGroup
	for i := range openers {
		all.Go(func() {
			for time.Since(began) < p.Budget && errs[i] == nil {
				errs[i] = b.openAndEnd(ctx)
				n.Add(1)
			}
		})
	}
	all.Wait()
	return float64(n.Load()) / time.Since(began).Seconds(), errors.Join(errs...)
}

func (b *bed) openAndEnd(ctx context.Context) error {
	c, h, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := c.initialize(); err != nil {
		return err
	}
	return h.End()
}

// memory measures how much more than before resident memory is at its peak when frames pass that
// are too long to be held. A front refuses such a frame of its client (serve.limits.body).
func (d direction) memory(ctx context.Context, _ plan, s subject, rows []row) (sample, error) {
	b, err := d.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	defer b.end()
	c, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	idle, err := machine.Resident(c.pid(b.proxy))
	if err == nil {
		err = c.pour(rows[0].frame)
	}
	if err == nil && d == stdioToHTTP {
		err = c.pour(frame{Size: rows[0].frame.Size, Args: true})
	}
	if err != nil {
		return nil, c.fail(rows[0].name, err)
	}
	peak, err := machine.PeakResident(c.pid(b.proxy))
	return sample{rows[0].name: (peak - idle) / mib}, err
}

// idle opens sessions and measures what the proxy holds when they have been still for a while.
func (d direction) idle(ctx context.Context, s subject, at string, sessions int) (sample, error) {
	if s.Front != "" { // which admits so many
		s.Argv = append([]string{s.Argv[0], "--config", s.Front}, s.Argv[1:]...)
	}
	b, err := d.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	defer b.end()
	before, err := machine.Resident(b.proxy.Process.Pid)
	if err != nil {
		return nil, err
	}
	for range sessions {
		c, h, err := b.connect(ctx)
		if err != nil {
			return nil, err
		}
		defer h.Close()
		if err = c.initialize(); err == nil {
			_, err = fmt.Fprint(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
		}
		if err == nil {
			err = h.Listen()
		}
		if err != nil {
			return nil, err
		}
	}
	time.Sleep(stillness)
	resident, err := machine.Resident(b.proxy.Process.Pid)
	return sample{at: resident / mib, at + "-session": (resident - before) / kib / float64(sessions)}, err
}
