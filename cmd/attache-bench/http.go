package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/httpclient"
	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// A direction is the name of the sides of a proxy that speak HTTP.
type direction string

const (
	httpToStdio direction = "h2s"
	stdioToHTTP direction = "s2h"
	httpToHTTP  direction = "h2h"
)

type deployment struct {
	dir     direction
	subject subject   // with the command of the direction
	server  *exec.Cmd // nil if the proxy starts its servers
	proxy   *exec.Cmd // nil for a proxy on stdio, which each session starts
	address string    // of the proxy
	stderr  *tail
}

// deploy starts the processes of the direction.
func (d direction) deploy(ctx context.Context, s subject) (*deployment, error) {
	b := &deployment{dir: d, subject: s, stderr: &tail{}}
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
		b.stop()
		return nil, err
	}
	return b, nil
}

// launch starts a command and waits until it listens.
func (b *deployment) launch(ctx context.Context, argv []string, address string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	machine.OwnGroup(cmd)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = b.subject.Env, b.stderr, grace
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := machine.AwaitListener(ctx, address); err != nil {
		stopGroup(cmd)
		return nil, fmt.Errorf("%s does not listen: %w; it said: %s", argv[0], err, b.stderr)
	}
	return cmd, nil
}

func (b *deployment) stop() {
	for _, cmd := range []*exec.Cmd{b.proxy, b.server} {
		if cmd != nil {
			stopGroup(cmd)
		}
	}
}

// stopGroup sends a command SIGTERM, and kills it and its children after grace.
func stopGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	waitOrKill(cmd)
}

func (b *deployment) open(ctx context.Context) (*session, error) {
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

// connect connects to a front. The session is not initialized yet.
func (b *deployment) connect(ctx context.Context) (*session, *httpclient.Client, error) {
	h, err := httpclient.Dial(ctx, b.address, apiKey)
	if err != nil {
		return nil, nil, err
	}
	return &session{subject: b.subject, stderr: b.stderr, in: h, out: bufio.NewReaderSize(h, 256*kib)}, h, nil
}

// load makes calls in all sessions at once, and measures the calls a second and the CPU time.
func (b *deployment) load(p plan, sessions []*session, out sample) error {
	var took time.Duration
	cpu, err := cpuTime(b.pid(sessions[0]), func() error {
		began := time.Now()
		errs := make([]error, len(sessions))
		var all sync.WaitGroup
		for i, c := range sessions {
			all.Go(func() {
				if b.dir == stdioToHTTP {
					_, errs[i] = c.pipeline(p.Messages, p.Window, frame{Size: 200})
				} else {
					errs[i] = c.repeat(p.Messages/len(sessions), frame{Size: 200})
				}
			})
		}
		all.Wait()
		took = time.Since(began)
		return errors.Join(errs...)
	})
	if err != nil {
		return fmt.Errorf("%w; it said: %s", err, b.stderr)
	}
	n := float64(p.Messages / len(sessions) * len(sessions))
	out[string(b.dir)+"-calls"] = n / took.Seconds()
	out[string(b.dir)+"-cpu"] = cpu.Seconds() * 1e5 / n
	return nil
}

// pid returns the process of the proxy: the front, or the process of the session.
func (b *deployment) pid(c *session) int {
	if b.proxy != nil {
		return b.proxy.Process.Pid
	}
	return c.cmd.Process.Pid
}
