package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

const (
	// notesPerCall is the number of notifications of a call, to measure their rate.
	notesPerCall = 4000
	// notePause is the time between the first and the second notification, in milliseconds,
	// to measure the delay of the first.
	notePause = 200
	// openers is the number of clients that open and end sessions at once.
	openers = 4
	// idleTime is how long sessions are idle before their memory is measured.
	idleTime = 2 * time.Second
)

func (d direction) measure(ctx context.Context, p plan, s subject, rows []row) (sample, error) {
	b, err := d.deploy(ctx, s)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	first, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	sessions := []*session{first}
	defer func() {
		for _, c := range sessions {
			c.stop()
		}
	}()
	out := sample{}
	for _, r := range rows {
		switch strings.TrimPrefix(r.name, string(d)+"-") {
		case "calls", "cpu":
			continue // load measures them, with all sessions
		case "progress":
			out[r.name], err = first.notesPerSecond(p)
		case "first":
			out[r.name], err = first.noteDelay()
		case "sessions":
			out[r.name], err = b.sessionsPerSecond(ctx, p)
		default:
			out[r.name], err = first.p50(p, r.frame)
		}
		if err != nil {
			return nil, first.check(r.name, err)
		}
	}
	for d != stdioToHTTP && len(sessions) < p.Window {
		c, err := b.open(ctx)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, c)
	}
	if err := b.load(p, sessions, out); err != nil {
		return nil, err
	}
	for _, c := range sessions {
		if err := c.check("the tally at the end", c.tally()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *session) notesPerSecond(p plan) (float64, error) {
	n, took := 0, time.Duration(0)
	for took < p.Budget/2 {
		_, all, err := c.notes(notesPerCall, 0)
		if err != nil {
			return 0, err
		}
		n, took = n+notesPerCall, took+all
	}
	return float64(n) / took.Seconds(), nil
}

// noteDelay returns the median delay of a notification, in milliseconds.
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

// notes makes a call with n notifications, and returns the time until the first of them and the
// time until the answer.
func (c *session) notes(n, pause int) (first, all time.Duration, err error) {
	c.id++
	sent := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"notes","arguments":{"count":%d,"pause":%d},"_meta":{"progressToken":%d}}}`+"\n", c.id, n, pause, c.id)
		sent <- err
	}()
	for received := 0; ; received++ {
		b, err := c.out.ReadSlice('\n')
		switch {
		case err != nil:
			return 0, 0, errors.Join(err, <-sent)
		case bytes.Contains(b, []byte(`"notifications/progress"`)):
			if received == 0 {
				first = time.Since(began)
			}
			continue
		case received != n:
			err = fmt.Errorf("%d notifications arrived and not %d", received, n)
		default:
			err = checkText(b, c.id, 0)
		}
		return first, time.Since(began), errors.Join(err, <-sent)
	}
}

// sessionsPerSecond returns how many sessions a second can be opened and ended.
func (b *deployment) sessionsPerSecond(ctx context.Context, p plan) (float64, error) {
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

func (b *deployment) openAndEnd(ctx context.Context) error {
	c, h, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := c.initialize(); err != nil {
		return err
	}
	return h.Ask(http.MethodDelete)
}

// memory measures how far the peak of resident memory is above its idle value when frames pass that
// are too long to hold. A front refuses such frames from its client (serve.limits.body).
func (d direction) memory(ctx context.Context, _ plan, s subject, rows []row) (sample, error) {
	b, err := d.deploy(ctx, s)
	if err != nil {
		return nil, err
	}
	defer b.stop()
	c, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	defer c.stop()
	idle, err := machine.Resident(b.pid(c))
	if err == nil {
		err = c.streamCall(rows[0].frame)
	}
	if err == nil && d == stdioToHTTP {
		err = c.streamCall(frame{Size: rows[0].frame.Size, Args: true})
	}
	if err != nil {
		return nil, c.check(rows[0].name, err)
	}
	peak, err := machine.PeakResident(b.pid(c))
	return sample{rows[0].name: (peak - idle) / mib}, err
}

// idle opens sessions and measures the memory of the proxy when they have been idle for a while.
func (d direction) idle(ctx context.Context, s subject, at string, sessions int) (sample, error) {
	if s.Front != "" {
		s.Argv = append([]string{s.Argv[0], "--config", s.Front}, s.Argv[1:]...)
	}
	b, err := d.deploy(ctx, s)
	if err != nil {
		return nil, err
	}
	defer b.stop()
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
			err = h.Ask(http.MethodGet)
		}
		if err != nil {
			return nil, err
		}
	}
	time.Sleep(idleTime)
	resident, err := machine.Resident(b.proxy.Process.Pid)
	return sample{at: resident / mib, at + "-session": (resident - before) / kib / float64(sessions)}, err
}
