package soak

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

type stdioLink struct {
	client  *client
	cmd     *exec.Cmd
	in      io.WriteCloser // an os.File, which writes one slice at a time
	log     *bytes.Buffer
	ended   chan struct{} // closed at the end of stdout
	waiting sync.Map      // of id to the chan []byte for its answer
	slow    atomic.Int32  // requests in flight whose answers are read slowly
}

func openStdio(args ...string) opener {
	return func(c *client) (link, error) {
		l := &stdioLink{client: c, log: &bytes.Buffer{}, ended: make(chan struct{})}
		l.cmd = exec.CommandContext(context.Background(), c.run.o.Attache, args...)
		machine.OwnGroup(l.cmd)
		l.cmd.Env, l.cmd.Stderr = c.run.env, l.log
		l.cmd.WaitDelay = patience
		var err error
		if l.in, err = l.cmd.StdinPipe(); err != nil {
			return nil, err
		}
		out, err := l.cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := l.cmd.Start(); err != nil {
			return nil, err
		}
		go l.read(out)
		return l, nil
	}
}

// read delivers answers to the calls that wait for them.
func (l *stdioLink) read(out io.Reader) {
	defer close(l.ended)
	lines := bufio.NewReaderSize(out, 4<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if len(line) > 0 && !l.client.gone.Load() {
				l.client.run.account.fault("%s: stdout ends in the middle of a line: %.200q", l.client.kind, line)
			}
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			l.client.run.account.fault("%s: stdout has %.200q: %v", l.client.kind, line, err)
			continue
		}
		if m.Method == "" {
			l.deliver(string(m.ID), line)
		}
		if l.slow.Load() > 0 {
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// deliver delivers an answer to the call that waits for it.
func (l *stdioLink) deliver(id string, line []byte) {
	to, known := l.waiting.LoadAndDelete(id)
	if !known {
		l.client.run.account.fault("%s: an answer that nobody waits for: %.200q", l.client.kind, line)
		return
	}
	to.(chan []byte) <- line
}

func (l *stdioLink) call(ctx context.Context, q *request) ([]byte, error) {
	answer := make(chan []byte, 1) // a late answer does not block
	l.waiting.Store(q.id, answer)
	if q.slow {
		l.slow.Add(1)
		defer l.slow.Add(-1)
	}
	_, err := l.in.Write(append(q.body, '\n'))
	close(q.written)
	if err != nil {
		return nil, l.lost(err)
	}
	select {
	case b := <-answer:
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.ended:
	}
	select {
	case b := <-answer: // it arrived before the end
		return b, nil
	default:
		return nil, l.lost(io.EOF)
	}
}

// lost returns the error of a link that broke.
func (l *stdioLink) lost(err error) error {
	if l.client.gone.Load() {
		return errGone
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

func (l *stdioLink) notify(_ context.Context, body []byte) error {
	_, err := l.in.Write(append(body, '\n'))
	return err
}

func (l *stdioLink) end(orderly bool) error {
	if orderly {
		_ = l.in.Close()
	} else {
		_ = l.cmd.Process.Kill()
	}
	late := time.AfterFunc(patience, func() { machine.KillGroup(l.cmd) })
	<-l.ended
	err := l.cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("attache did not end within %v: %s", patience, l.log)
	}
	var status *exec.ExitError
	if !orderly || !l.client.killed.IsZero() || !errors.As(err, &status) {
		return nil
	}
	if code := status.ExitCode() - 128; code == int(syscall.SIGTERM) || code == int(syscall.SIGKILL) {
		l.client.run.account.count("servers that had not left in 1.5 s, on a busy machine, and were ended")
		return nil
	}
	return fmt.Errorf("attache ended with %w: %s", err, l.log)
}
