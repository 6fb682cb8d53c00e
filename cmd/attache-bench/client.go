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

// A session is one process of a subject, and the client that talks to it. It is
// for one goroutine.
type session struct {
	subject subject
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    *tail // on stderr

	id    int // of the last request
	calls int // sent so far, of those that can be filled
	// anyOrder says that answers may come in another order than the requests.
	anyOrder bool
	req      []byte
	line     []byte

	// firstAnswer is the time from the start to the answer to initialize.
	firstAnswer time.Duration
}

// grace is how long a process may take to leave when its stdin is closed.
const grace = 3 * time.Second

// start starts the subject and initializes it. When ctx ends, the process and
// what it started are killed.
func start(ctx context.Context, s subject) (*session, error) {
	cmd := exec.CommandContext(ctx, s.Argv[0], s.Argv[1:]...)
	machine.OwnGroup(cmd)
	cmd.Env = s.Env
	cmd.WaitDelay = grace
	c := &session{subject: s, cmd: cmd, said: &tail{}}
	cmd.Stderr = c.said
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

// pipes returns the stdin of a command that is not started yet, and a reader of its stdout.
func pipes(cmd *exec.Cmd, size int) (io.WriteCloser, *bufio.Reader, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	return in, bufio.NewReaderSize(out, size), err
}

// initialize opens the session.
func (c *session) initialize() error {
	b, err := c.call([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"attache-bench","version":"1"}}}` + "\n"))
	if err == nil && (!bytes.HasPrefix(b, []byte(`{"jsonrpc":"2.0","id":0,`)) || !bytes.Contains(b, []byte(`"result"`))) {
		err = fmt.Errorf("wrong answer: %.200q", b)
	}
	if err != nil {
		return c.fail("initialize", err)
	}
	return nil
}

// open starts the subject and begins the session.
func open(ctx context.Context, s subject) (*session, error) {
	c, err := start(ctx, s)
	if err != nil {
		return nil, err
	}
	return c, c.begin()
}

// begin does what clients do before their first call, and the first call, which carries
// the briefing where there is one.
func (c *session) begin() error {
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		return c.fail("initialized", err)
	}
	c.id++
	b, err := c.call(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", c.id))
	if err == nil && !bytes.Contains(b, []byte(`"name":"echo"`)) {
		err = fmt.Errorf("wrong answer: %.200q", b)
	}
	if err != nil {
		return c.fail("tools/list", err)
	}
	if err := c.firstCall(); err != nil {
		return c.fail("the first call", err)
	}
	return nil
}

func (c *session) firstCall() error {
	c.id++
	c.calls++
	b, err := c.call(frame{Size: 200}.request(nil, c.id))
	if err != nil || !c.subject.Briefs {
		return errors.Join(err, checkText(b, c.id, 200))
	}
	rest := fmt.Appendf(nil, `"text":"%s%s`, payload()[:200], textAfter)
	if !bytes.Contains(b, []byte(briefed)) || !bytes.HasSuffix(b, rest) {
		return fmt.Errorf("wrong answer: no briefing and then the text, but %.200q", b)
	}
	return nil
}

// fail ends the session and returns err with what the subject said of it.
func (c *session) fail(doing string, err error) error {
	c.stop()
	if said := c.said.String(); said != "" {
		return fmt.Errorf("%s: %w; it said: %s", doing, err, said)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// call sends a request and returns the next line, which is valid until the next
// call. What is longer than a pipe is written beside, as a proxy may begin to
// answer before it has read all.
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
		err = <-sent // the caller uses req again
	}
	return b, err
}

func (c *session) receive() ([]byte, error) {
	c.line = c.line[:0]
	for {
		b, err := c.out.ReadSlice('\n')
		if err == nil && len(c.line) == 0 {
			return b, nil
		}
		c.line = append(c.line, b...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return c.line, err
	}
}

// time does one call and returns how long it took. The answer is checked after
// the clock has stopped.
func (c *session) time(f frame) (time.Duration, error) {
	c.id++
	c.req = f.request(c.req[:0], c.id)
	if len(c.req) <= hold {
		c.calls++
	}
	began := time.Now()
	b, err := c.call(c.req)
	took := time.Since(began)
	switch {
	case err != nil:
	case f.Args:
		err = checkSink(b, c.id, len(c.req), c.subject.Fills && len(c.req) <= hold)
	default:
		err = checkText(b, c.id, f.Size)
	}
	return took, err
}

// pour does one call whose frames are too long to be held: the argument is made,
// and the result checked, piece by piece.
func (c *session) pour(f frame) error {
	c.id++
	if f.requestLen(c.id) <= hold {
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
		_, err := c.in.Write(f.request(nil, id)) // in one piece, as over HTTP each is a message
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
		if terr := check.take(b); terr != nil {
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

// pipeline does n calls with at most window in flight, and returns how long they
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

// receiveAll wants the answers in the order of the requests: the server answers
// so, and a proxy keeps the order. Over HTTP they come in any order, each once.
func (c *session) receiveAll(first, n, size int, inFlight <-chan struct{}) error {
	came := map[int]bool{}
	for i := range n {
		b, err := c.receive()
		id := first + i
		if c.anyOrder && err == nil {
			if id, err = strconv.Atoi(string(scalar(b, `"id":`))); came[id] || id < first || id >= first+n {
				return fmt.Errorf("wrong answer: nobody waits for %.80q", b)
			}
			came[id] = true
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

// finish asks the server what it saw, and ends the session.
func (c *session) finish() error {
	if err := c.tally(); err != nil {
		return c.fail("the tally at the end", err)
	}
	c.stop()
	return nil
}

// tally tells whether all calls reached the server, filled if they had to be.
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

// stop closes the subject's stdin, waits for it to leave, and kills it and what
// it started if it does not.
func (c *session) stop() {
	c.in.Close()
	if c.cmd == nil {
		return // the session is one of many of a front
	}
	t := time.AfterFunc(grace, func() { machine.KillGroup(c.cmd) })
	_ = c.cmd.Wait()
	t.Stop()
	machine.KillGroup(c.cmd)
}

// A tail keeps the last of what is written to it.
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

// String returns it as one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(string(t.last)), " ")
}
