package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
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
			rows: []row{
				{name: at + "p50", unit: "µs", ref: floor, what: "p50 of a call with a result of 200 B", frame: frame{Size: 200}},
				{name: at + "result-4MiB", unit: "µs", ref: floor, what: "p50 of a call", frame: frame{Size: 4 * mib}},
				{name: at + "args-4MiB", unit: "µs", ref: floor, what: "p50 of a call", frame: frame{Size: 4 * mib, Args: true}},
				{name: at + "calls", unit: "call/s", ref: floor, what: "calls of 200 B a second, 64 sessions; from stdio one session, 64 in flight", frame: frame{Size: 200}},
				{name: at + "cpu", unit: "s", ref: floor, what: "CPU of the proxy process for 100,000 of them", frame: frame{Size: 200}},
			},
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
		switch r.name {
		case string(d) + "-calls", string(d) + "-cpu":
		default:
			us, err := first.times(p, r.frame)
			if err != nil {
				return nil, first.fail(r.name, err)
			}
			out[r.name] = median(us)
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
	if d != httpToStdio {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
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
	var err error
	if b.address, err = freeAddress(); err != nil {
		return nil, errors.Join(err, b.end())
	}
	if s.Name == floor {
		words = append(words, b.address)
	} else {
		words = slices.Concat(words[:1], []string{"serve", "--listen", b.address}, words[1:])
	}
	b.subject.Argv = slices.Concat(words, server)
	if b.proxy, err = b.launch(ctx, b.subject.Argv, b.address); err != nil {
		return nil, errors.Join(err, b.end())
	}
	return b, nil
}

// launch starts a command and waits until it listens.
func (b *bed) launch(ctx context.Context, argv []string, address string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	ownGroup(cmd)
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
func (b *bed) end() error {
	for _, cmd := range []*exec.Cmd{b.proxy, b.server} {
		if cmd != nil {
			stopGroup(cmd)
		}
	}
	return nil
}

// stopGroup asks a command to end, and kills it and what it started if it does not.
func stopGroup(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	t := time.AfterFunc(grace, func() { killGroup(cmd) })
	_ = cmd.Wait()
	t.Stop()
	killGroup(cmd)
}

// freeAddress returns an address on which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
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
	conn, err := net.Dial("tcp", b.address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	h := &httpClient{conn: conn, in: bufio.NewReaderSize(conn, 64*kib), replies: make(chan []byte, 1), stop: stop}
	c := &session{subject: b.subject, said: b.said, in: h, out: bufio.NewReaderSize(h, 256*kib)}
	if err := c.initialize(); err != nil {
		return nil, err
	}
	return c, c.begin()
}

// load has all sessions call at once, and measures the calls a second and the CPU time.
func (b *bed) load(p plan, sessions []*session, out sample) error {
	pid := sessions[0].pid(b.proxy)
	before, err := cpuTime(pid)
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
	after, err := cpuTime(pid)
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

// An httpClient is a session with a front, on a connection of its own: what is written is
// sent as a request, and what is read is the answer. It takes JSON for an answer alone.
type httpClient struct {
	conn    net.Conn
	in      *bufio.Reader
	session string
	req     []byte
	replies chan []byte
	rest    []byte
	stop    func() bool
}

// Write sends one message.
func (h *httpClient) Write(b []byte) (int, error) {
	q := append(h.req[:0], "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "+benchKey+"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"...)
	if h.session != "" {
		q = append(append(append(q, "Mcp-Session-Id: "...), h.session...), "\r\nMcp-Protocol-Version: 2025-11-25\r\n"...)
	}
	q = append(strconv.AppendInt(append(q, "Content-Length: "...), int64(len(b)), 10), "\r\n\r\n"...)
	h.req = append(q, b...)
	if _, err := h.conn.Write(h.req); err != nil {
		return 0, err
	}
	resp, err := http.ReadResponse(h.in, nil)
	if err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return 0, err
	case resp.StatusCode == http.StatusAccepted:
		return len(b), nil
	case resp.StatusCode != http.StatusOK:
		return 0, fmt.Errorf("HTTP %d: %.200s", resp.StatusCode, answer)
	}
	if h.session == "" {
		h.session = resp.Header.Get("Mcp-Session-Id")
	}
	h.replies <- append(bytes.TrimRight(answer, "\n"), '\n')
	return len(b), nil
}

// Read reads from the answers.
func (h *httpClient) Read(b []byte) (int, error) {
	if len(h.rest) == 0 {
		h.rest = <-h.replies
	}
	n := copy(b, h.rest)
	h.rest = h.rest[n:]
	return n, nil
}

// Close closes the connection.
func (h *httpClient) Close() error {
	h.stop()
	return h.conn.Close()
}
