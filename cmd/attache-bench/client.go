package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// A session is a process of a subject with the client that talks to it. Only one
// goroutine may use it.
type session struct {
	subject subject
	cmd     *exec.Cmd // nil for a session of a front
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  *tail

	id    int // of the last request
	calls int // sent so far and short enough to be filled
	// anyOrder allows answers in another order than the requests.
	anyOrder bool
	req      []byte // buffer of a request
	line     []byte // buffer of a long answer

	// firstAnswer is the time from the start to the answer to initialize.
	firstAnswer time.Duration
}

// grace is how long a process may run on after its stdin was closed.
const grace = 3 * time.Second

// start starts the subject and initializes the session. When ctx ends, the process and
// its children are killed.
func start(ctx context.Context, s subject) (*session, error) {
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	machine.OwnGroup(cmd)
	cmd.Env = s.Env
	cmd.WaitDelay = grace
	c := &session{subject: s, cmd: cmd, stderr: &tail{}}
	cmd.Stderr = c.stderr
	var err error
	if c.in, c.out, err = pipes(cmd, 256*kib); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	err = c.initialize()
	c.firstAnswer = time.Since(began)
	return c, err
}

// pipes returns pipes to the stdin and from the stdout of a command that is not started yet.
func pipes(cmd *exec.Cmd, size int) (io.WriteCloser, *bufio.Reader, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	return in, bufio.NewReaderSize(out, size), err
}

// initialize sends initialize and checks its answer.
func (c *session) initialize() error {
	b, err := c.call([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"attache-bench","version":"1"}}}` + "\n"))
	if err == nil && (!bytes.HasPrefix(b, []byte(`{"jsonrpc":"2.0","id":0,`)) || !bytes.Contains(b, []byte(`"result"`))) {
		err = fmt.Errorf("wrong answer: %.200q", b)
	}
	return c.check("initialize", err)
}

func open(ctx context.Context, s subject) (*session, error) {
	c, err := start(ctx, s)
	if err != nil {
		return nil, err
	}
	return c, c.begin()
}

// begin sends what clients send after initialize, and the first call, whose answer may
// have the briefing.
func (c *session) begin() error {
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return c.check("initialized", err)
	}
	c.id++
	b, err := c.call(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", c.id))
	if err == nil && !bytes.Contains(b, []byte(`"name":"echo"`)) {
		err = fmt.Errorf("wrong answer: %.200q", b)
	}
	if err != nil {
		return c.check("tools/list", err)
	}
	return c.check("the first call", c.firstCall())
}

func (c *session) firstCall() error {
	c.id++
	c.calls++
	b, err := c.call(frame{Size: 200}.request(nil, c.id))
	if err != nil || !c.subject.Briefs {
		return errors.Join(err, checkText(b, c.id, 200))
	}
	rest := fmt.Appendf(nil, `"text":"%s%s`, payload()[:200], textAfter)
	if !bytes.Contains(b, []byte(briefingTitle)) || !bytes.HasSuffix(b, rest) {
		return fmt.Errorf("wrong answer: no briefing and then the text, but %.200q", b)
	}
	return nil
}

// check returns nil if err is nil. Otherwise it stops the session and returns err with
// the last lines of the subject's stderr.
func (c *session) check(doing string, err error) error {
	if err == nil {
		return nil
	}
	c.stop()
	if stderr := c.stderr.String(); stderr != "" {
		return fmt.Errorf("%s: %w; it said: %s", doing, err, stderr)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// call sends a request and returns the next line, which is valid until the next
// call. It writes a request that does not fit into a pipe in another goroutine, because
// a proxy may begin to answer before it has read everything.
func (c *session) call(req []byte) ([]byte, error) {
	if len(req) <= 32*kib {
		if _, err := c.in.Write(req); err != nil {
			return nil, err
		}
		return c.receive()
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.in.Write(req)
		sent <- err
	}()
	b, err := c.receive()
	if err == nil {
		err = <-sent // the caller reuses req
	}
	return b, err
}

func (c *session) receive() ([]byte, error) {
	b, _, err := readLine(c.out, &c.line)
	return b, err
}

// timeCall makes one call and returns how long it took. The answer is checked after
// the clock has stopped.
func (c *session) timeCall(f frame) (time.Duration, error) {
	c.id++
	c.req = f.request(c.req[:0], c.id)
	if len(c.req) <= holdLimit {
		c.calls++
	}
	began := time.Now()
	b, err := c.call(c.req)
	took := time.Since(began)
	switch {
	case err != nil:
	case f.Args:
		err = checkSink(b, c.id, len(c.req), c.subject.Fills && len(c.req) <= holdLimit)
	default:
		err = checkText(b, c.id, f.Size)
	}
	return took, err
}

// streamCall makes one call whose frames are too long to hold: it writes the argument and
// checks the result piece by piece.
func (c *session) streamCall(f frame) error {
	c.id++
	if f.requestLen(c.id) <= holdLimit {
		c.calls++
	}
	sent := make(chan error, 1)
	go func() { sent <- c.send(f, c.id) }()
	var err error
	if f.Args {
		var b []byte
		if b, err = c.receive(); err == nil {
			err = checkSink(b, c.id, f.requestLen(c.id), false)
		}
	} else {
		err = c.receiveText(f.Size)
	}
	if err != nil {
		return err
	}
	return <-sent
}

func (c *session) send(f frame, id int) error {
	if !f.Args {
		_, err := c.in.Write(f.request(nil, id)) // in one piece: over HTTP each write is a message
		return err
	}
	_, err := c.in.Write(f.requestHead(nil, id))
	for n := f.Size; n > 0 && err == nil; n -= len(payload()) {
		_, err = c.in.Write(payload()[:min(n, len(payload()))])
	}
	if err == nil {
		_, err = io.WriteString(c.in, f.requestTail())
	}
	return err
}

func (c *session) receiveText(size int) error {
	check := newTextCheck(c.id, size)
	for {
		b, err := c.out.ReadSlice('\n')
		if terr := check.next(b); terr != nil {
			return terr
		}
		switch {
		case err == nil:
			return check.end()
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}

// pipeline makes n calls with at most window in flight, and returns how long all
// took together.
func (c *session) pipeline(n, window int, f frame) (time.Duration, error) {
	inFlight := make(chan struct{}, window)
	stop := make(chan struct{})
	sent := make(chan error, 1)
	first := c.id + 1
	c.id += n
	c.calls += n
	began := time.Now()
	go func() { sent <- c.sendAll(first, n, f, inFlight, stop) }()
	err := c.receiveAll(first, n, f.Size, inFlight)
	took := time.Since(began)
	close(stop)
	return took, errors.Join(err, <-sent)
}

func (c *session) sendAll(first, n int, f frame, inFlight chan<- struct{}, stop <-chan struct{}) error {
	var req []byte
	for id := first; id < first+n; id++ {
		select {
		case inFlight <- struct{}{}:
		case <-stop:
			return nil
		}
		req = f.request(req[:0], id)
		if _, err := c.in.Write(req); err != nil {
			return err
		}
	}
	return nil
}

// receiveAll checks that answers arrive in the order of the requests: the server answers
// in order, and a proxy keeps the order. Over HTTP it accepts any order, and each answer once.
func (c *session) receiveAll(first, n, size int, inFlight <-chan struct{}) error {
	answered := map[int]bool{}
	for i := range n {
		b, err := c.receive()
		id := first + i
		if c.anyOrder && err == nil {
			if id, err = strconv.Atoi(string(scalar(b, `"id":`))); answered[id] || id < first || id >= first+n {
				return fmt.Errorf("wrong answer: nobody waits for %.80q", b)
			}
			answered[id] = true
		}
		if err == nil {
			err = checkText(b, id, size)
		}
		if err != nil {
			return err
		}
		<-inFlight
	}
	return nil
}

func (c *session) finish() error {
	if err := c.check("the tally at the end", c.tally()); err != nil {
		return err
	}
	c.stop()
	return nil
}

// tally checks that all calls reached the server, and were filled if the subject fills.
func (c *session) tally() error {
	c.id++
	b, err := c.call(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tally","arguments":{}}}`+"\n", c.id))
	if err != nil {
		return err
	}
	filled := 0
	if c.subject.Fills {
		filled = c.calls
	}
	want := fmt.Sprintf(tallyFormat, c.calls, filled)
	if got, ok := textOf(b, c.id); !ok || string(got) != want {
		return fmt.Errorf("the server should have seen %s, and it says %.200q", want, b)
	}
	return nil
}

// stop closes the subject's stdin and waits until the process ends. It kills the process
// and its children after grace.
func (c *session) stop() {
	c.in.Close()
	if c.cmd != nil {
		waitOrKill(c.cmd)
	}
}

// waitOrKill waits until a command ends, kills its group after grace, and then kills
// what is left of the group.
func waitOrKill(cmd *exec.Cmd) {
	t := time.AfterFunc(grace, func() { machine.KillGroup(cmd) })
	_ = cmd.Wait()
	t.Stop()
	machine.KillGroup(cmd)
}

// A tail is a writer that keeps the last KiB.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	if over := len(t.last) - kib; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return len(b), nil
}

// String returns the text as one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.last)), " ")
}
