package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/httpclient"
	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
	"github.com/attache-mcp/attache/cmd/attache-bench/internal/rules"
)

// A direction says on which side of a proxy HTTP is spoken.
type direction string

const (
	httpToStdio direction = "h2s"
	stdioToHTTP direction = "s2h"
	httpToHTTP  direction = "h2h"
)

// httpParts are the parts with HTTP on a side of the proxy.
func httpParts() (out []part) {
	for _, d := range []direction{httpToStdio, stdioToHTTP, httpToHTTP} {
		at := string(d) + "-"
		out = append(out, part{
			name: string(d), processes: 2, measure: d.measure,
			leaves: []string{direct, line, bytecopy},
			rows: append([]row{
				{name: at + "p50", unit: "µs", ref: floor, what: "p50 of a call with a result of 200 B", frame: frame{Size: 200}},
				{name: at + "result-4MiB", unit: "µs", ref: floor, what: "p50 of a call", frame: frame{Size: 4 * mib}},
				{name: at + "args-4MiB", unit: "µs", ref: floor, what: "p50 of a call", frame: frame{Size: 4 * mib, Args: true}},
				{name: at + "calls", unit: "call/s", ref: floor, what: "calls of 200 B a second, 64 sessions; from stdio one session, 64 in flight", frame: frame{Size: 200}},
				{name: at + "cpu", unit: "s", ref: floor, what: "CPU of the proxy process for 100,000 of them", frame: frame{Size: 200}},
			}, d.streamRows()...),
		}, part{
			name: at + "memory", processes: 1, measure: d.memory, leaves: []string{direct, line, bytecopy, floor},
			rows: []row{{name: at + "memory-1GiB", unit: "MiB", what: "peak resident of a result of 1 GiB, more than idle; from stdio of arguments, too", frame: frame{Size: gib}}},
		})
	}
	return out
}

// measure measures the rows of a direction.
func (d direction) measure(ctx context.Context, p plan, s subject, rows []row) (sample, error) {
	b, err := d.begin(ctx, s)
	if err != nil {
		return nil, err
	}
	defer b.end()
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
		if r.frame.Size > 0 && r.name != string(d)+"-calls" && r.name != string(d)+"-cpu" {
			us, err := first.times(p, r.frame)
			if err != nil {
				return nil, first.fail(r.name, err)
			}
			out[r.name] = median(us)
		}
	}
	if err := b.streams(ctx, p, first, rows, out); err != nil {
		return nil, err
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
		if err := c.tally(); err != nil {
			return nil, c.fail("the tally at the end", err)
		}
	}
	return out, nil
}

// A bed is a proxy that runs, and what it stands in front of.
type bed struct {
	dir     direction
	subject subject   // with the command of the direction
	server  *exec.Cmd // nil if the proxy starts its servers
	proxy   *exec.Cmd // nil for a proxy on stdio, which each session starts
	address string    // of the proxy
	said    *tail
}

// begin starts what the direction needs.
func (d direction) begin(ctx context.Context, s subject) (*bed, error) {
	b := &bed{dir: d, subject: s, said: &tail{}}
	words, server := s.Argv[:len(s.Argv)-3], s.Argv[len(s.Argv)-3:]
	var err error
	if d != httpToStdio {
		address := machine.FreeAddress()
		if b.server, err = b.launch(ctx, []string{server[0], modeHTTP, address, server[2]}, address); err != nil {
			return nil, err
		}
		server = []string{"http://" + address + "/mcp"}
	}
	if s.Name == floor {
		words = []string{words[0], map[direction]string{httpToStdio: modeBridge, stdioToHTTP: modeOutBridge, httpToHTTP: modeReverse}[d]}
	}
	if d == stdioToHTTP {
		b.subject.Argv = slices.Concat(words, server)
		return b, nil
	}
	b.address = machine.FreeAddress()
	if s.Name == floor {
		words = append(words, b.address)
	} else {
		words = slices.Concat(words[:1], []string{"serve", "--listen", b.address}, words[1:])
	}
	b.subject.Argv = slices.Concat(words, server)
	if b.proxy, err = b.launch(ctx, b.subject.Argv, b.address); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// launch starts a command and waits until it listens.
func (b *bed) launch(ctx context.Context, argv []string, address string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	machine.OwnGroup(cmd)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = b.subject.Env, b.said, grace
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		if c, err := net.Dial("tcp", address); err == nil {
			return cmd, c.Close()
		}
		time.Sleep(5 * time.Millisecond)
	}
	stopGroup(cmd)
	return nil, fmt.Errorf("%s does not listen: %w; it said: %s", argv[0], ctx.Err(), b.said)
}

// end ends the proxy and the server.
func (b *bed) end() {
	for _, cmd := range []*exec.Cmd{b.proxy, b.server} {
		if cmd != nil {
			stopGroup(cmd)
		}
	}
}

// stopGroup asks a command to end, and kills it and what it started if it does not.
func stopGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	t := time.AfterFunc(grace, func() { machine.KillGroup(cmd) })
	_ = cmd.Wait()
	t.Stop()
	machine.KillGroup(cmd)
}

// open opens a session.
func (b *bed) open(ctx context.Context) (*session, error) {
	if b.dir == stdioToHTTP {
		c, err := open(ctx, b.subject)
		if err == nil {
			c.anyOrder = true
		}
		return c, err
	}
	c, _, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.initialize(); err != nil {
		return nil, err
	}
	return c, c.begin()
}

// connect connects to a front for a session that is not open yet.
func (b *bed) connect(ctx context.Context) (*session, *httpclient.Client, error) {
	h, err := httpclient.Dial(ctx, b.address, rules.Key)
	if err != nil {
		return nil, nil, err
	}
	return &session{subject: b.subject, said: b.said, in: h, out: bufio.NewReaderSize(h, 256*kib)}, h, nil
}

// load has all sessions call at once, and measures the calls a second and the CPU time.
func (b *bed) load(p plan, sessions []*session, out sample) error {
	pid := sessions[0].pid(b.proxy)
	before, err := machine.CPUTime(pid)
	if err != nil {
		return err
	}
	began := time.Now()
	errs := make([]error, len(sessions))
	var all sync.WaitGroup
	for i, c := range sessions {
		all.Go(func() {
			if b.dir == stdioToHTTP {
				_, errs[i] = c.pipeline(p.Messages, p.Window, frame{Size: 200})
				return
			}
			for range p.Messages / len(sessions) {
				if _, errs[i] = c.time(frame{Size: 200}); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w; it said: %s", err, b.said)
	}
	after, err := machine.CPUTime(pid)
	if err != nil {
		return err
	}
	n := float64(p.Messages / len(sessions) * len(sessions))
	out[string(b.dir)+"-calls"] = n / took.Seconds()
	out[string(b.dir)+"-cpu"] = (after - before).Seconds() * 1e5 / n
	return nil
}

// pid returns the process of the proxy: that of a session on stdio, or of a front.
func (c *session) pid(front *exec.Cmd) int {
	if front != nil {
		return front.Process.Pid
	}
	return c.cmd.Process.Pid
}
