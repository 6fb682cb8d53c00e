//go:build e2e && unix

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
)

const (
	frontSessions = 50
	// callsBehind is the number of calls that each session makes after the last front is back.
	callsBehind = 3
)

// TestE2EFronts runs three fronts behind nginx, with the configuration from packaging, and 50 sessions that
// make calls all the time.
func TestE2EFronts(t *testing.T) {
	if _, err := exec.LookPath("nginx"); err != nil {
		t.Skip("nginx is not installed")
	}
	t.Run("rolling restart", testRollingRestart)
	t.Run("a front is killed", testFrontKilled)
	t.Run("a front is unreachable", testFrontUnreachable)
	t.Run("fronts come back", testFrontsComeBack)
	t.Run("a remote server answers 503", testRemoteUnavailable)
	t.Run("a remote server answers 502", testRemoteBadGateway)
}

// testFrontUnreachable makes a front name another one that cannot be reached, or that receives the message and
// closes the connection: only in the first case may nginx send the message to a front again. An address that its
// configuration does not list gets no message.
func testFrontUnreachable(t *testing.T) {
	for _, row := range []struct {
		name             string
		listed, listens  bool
		status, requests int
	}{
		{"no connection", true, false, http.StatusServiceUnavailable, 2},
		{"no answer", true, true, http.StatusBadGateway, 1},
		{"not listed", false, true, http.StatusServiceUnavailable, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				panic(http.ErrAbortHandler)
			}))
			defer other.Close()
			if !row.listens {
				other.Close()
			}
			var requests atomic.Int64
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Attache-Front", other.Listener.Addr().String())
				w.Header().Set("Attache-Executed", "nothing")
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer front.Close()
			f := &farm{T: t, addresses: []string{front.Listener.Addr().String()}}
			if row.listed {
				f.named = []string{other.Listener.Addr().String()}
			}
			f.startNginx()
			_, text, status := f.post(strings.Repeat("0", 32)+".x", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			if status != row.status || int(requests.Load()) != row.requests {
				t.Errorf("status %d, and the front got %d requests: %s", status, requests.Load(), text)
			}
		})
	}
}

// testFrontsComeBack makes both fronts unreachable for one request. When they serve again, nginx must send them
// requests that come at once, although it tries such a front with one request a second.
func testFrontsComeBack(t *testing.T) {
	const requests = 6
	f := &farm{T: t}
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		l.Close()
		f.addresses = append(f.addresses, l.Addr().String())
	}
	f.startNginx()
	session := strings.Repeat("0", 32) + ".x"
	if _, text, status := f.post(session, `{}`); status != http.StatusBadGateway {
		t.Fatalf("without fronts: status %d: %s", status, text)
	}
	var arrived sync.WaitGroup
	arrived.Add(requests)
	for _, address := range f.addresses {
		l, err := net.Listen("tcp", address)
		check(t, err)
		front := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			arrived.Done()
			arrived.Wait()
		})}}
		front.Start()
		defer front.Close()
	}
	statuses := make(chan int)
	for range requests {
		go func() {
			_, _, status := f.post(session, `{}`)
			if status != http.StatusOK {
				arrived.Done()
			}
			statuses <- status
		}()
	}
	for range requests {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("with both fronts: status %d", status)
		}
	}
}

// testRemoteBadGateway makes a front answer 502 because a remote server did, which may have executed the call.
func testRemoteBadGateway(t *testing.T) {
	var requests atomic.Int64
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, `{}`)
	}))
	defer front.Close()
	f := &farm{T: t, addresses: []string{front.Listener.Addr().String()}}
	f.startNginx()
	r, err := f.client.Post("https://mcp.example.com/mcp", "application/json", strings.NewReader(`{}`))
	check(t, err)
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusBadGateway || r.Header.Get("Retry-After") != "7" || requests.Load() != 1 || !json.Valid(b) {
		t.Errorf("status %d, Retry-After %q, %d requests: %s", r.StatusCode, r.Header.Get("Retry-After"), requests.Load(), b)
	}
}

// testRemoteUnavailable makes a front answer 503 because a remote server did, which may have executed the
// call: nginx may not send it to a front again.
func testRemoteUnavailable(t *testing.T) {
	for _, row := range []struct {
		name    string
		refuses int // how many requests the front refuses itself
	}{{"at once", 0}, {"in the second front", 1}} {
		t.Run(row.name, func(t *testing.T) {
			var requests, executed atomic.Int64
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if int(requests.Add(1)) <= row.refuses {
					w.Header().Set("Attache-Executed", "nothing")
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				executed.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer front.Close()
			f := &farm{T: t, addresses: []string{front.Listener.Addr().String()}}
			f.startNginx()
			_, text, status := f.post(strings.Repeat("0", 32)+".x", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			if status != http.StatusServiceUnavailable || executed.Load() != 1 || !strings.Contains(text, "may have executed") {
				t.Errorf("status %d, executed %d times: %s", status, executed.Load(), text)
			}
		})
	}
}

// A farm has several fronts behind nginx.
type farm struct {
	*testing.T
	listeners []net.Listener // nil if each front opens its own
	addresses []string
	named     []string // fronts that get only requests for which another one names them
	config    string
	fronts    []*exec.Cmd
	client    *http.Client
	calls     string // a file with one line for each call that a server has executed
}

func newFarm(t *testing.T, sockets bool) *farm {
	f := &farm{T: t}
	dir := t.TempDir()
	f.calls, f.config = filepath.Join(dir, "calls"), filepath.Join(dir, "config.yaml")
	t.Setenv("XDG_STATE_HOME", dir)
	t.Setenv("ECHO_CALLS", f.calls)
	attachetest.WriteFile(t, f.config, "serve: {hosts: [mcp.example.com]}\n")
	for i := range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		f.addresses = append(f.addresses, l.Addr().String())
		if sockets {
			f.listeners = append(f.listeners, l)
			t.Cleanup(func() { l.Close() })
		} else {
			l.Close()
		}
		f.fronts = append(f.fronts, nil)
		f.start(i)
	}
	f.startNginx()
	return f
}

// start starts a front.
func (f *farm) start(i int) {
	f.Helper()
	cmd := exec.Command("attache", "serve", "--log-format", "json", "--config", f.config, "--listen", f.addresses[i], "--", "echoserver")
	if f.listeners != nil {
		cmd = inheritSocket(f.T, f.listeners[i], "--config "+f.config+" -- echoserver")
	}
	f.fronts[i] = cmd
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	check(f, err)
	log, ended := &frontLog{serving: make(chan struct{})}, make(chan struct{})
	go func() {
		_, _ = io.Copy(log, stderr)
		close(ended)
	}()
	f.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
		if f.Failed() {
			f.Logf("front %d, process %d:\n%s", i, cmd.Process.Pid, log.text())
		}
	})
	select {
	case <-log.serving:
	case <-ended:
		f.Fatalf("front %d ended before it served:\n%s", i, log.text())
	}
}

// A frontLog receives the stderr of a front.
type frontLog struct {
	mu      sync.Mutex
	b       bytes.Buffer
	once    sync.Once
	serving chan struct{} // closed when the front serves
}

// Write implements io.Writer.
func (l *frontLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Write(b)
	if bytes.Contains(l.b.Bytes(), []byte(`"msg":"serving"`)) {
		l.once.Do(func() { close(l.serving) })
	}
	return len(b), nil
}

func (l *frontLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (f *farm) startNginx() {
	f.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(f, err)
	at := free.Addr().String()
	free.Close()
	command := attachetest.Nginx(f.T, at, f.addresses, f.named...)
	cmd := exec.Command(command[0], command[1:]...)
	var log frontLog
	cmd.Stderr = &log
	check(f, cmd.Start())
	f.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if f.Failed() {
			f.Log(log.text())
		}
	})
	f.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: frontSessions,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", at)
		},
	}}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", at); err == nil {
			c.Close()
			return
		}
	}
	f.Fatal("nginx does not listen:", log.text())
}

// post sends a message and returns the answer and its status, or 0 without an answer.
func (f *farm) post(session, body string) (id, text string, status int) {
	return f.postUntil(context.Background(), session, body)
}

func (f *farm) postUntil(ctx context.Context, session, body string) (id, text string, status int) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://mcp.example.com/mcp", strings.NewReader(body))
	if err != nil {
		return "", err.Error(), 0
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := f.client.Do(r)
	if err != nil {
		return "", err.Error(), 0
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err.Error(), 0
	}
	return resp.Header.Get("Mcp-Session-Id"), string(b), resp.StatusCode
}

// A frontClient makes calls in a session until it is stopped, and then callsBehind more.
type frontClient struct {
	f       *farm
	name    string
	session string
	made    atomic.Int64 // calls with a result
	// failed lists all other answers, which are errors unless a front was killed. Calls that
	// were refused with 503 are made again.
	failed  []string
	refused int
	last    string // the last refusal
}

func (c *frontClient) open() error {
	const body = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	id, text, status := c.f.post("", body)
	if c.session = id; id == "" {
		return fmt.Errorf("%s: initialize: %d %s", c.name, status, text)
	}
	if _, text, status := c.f.post(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
		return fmt.Errorf("%s: initialized: %d %s", c.name, status, text)
	}
	return nil
}

func (c *frontClient) run(stop <-chan struct{}) {
	left := callsBehind
	for n := 0; left > 0; n++ {
		select {
		case <-stop:
			left--
		default:
		}
		c.call(fmt.Sprintf("%s-%d", c.name, n))
	}
}

func (c *frontClient) call(name string) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"whoami","arguments":{"user":%q}}}`, name, name)
	for {
		_, text, status := c.f.post(c.session, body)
		var reply struct {
			ID     string
			Result json.RawMessage
		}
		if i := strings.Index(text, `{"jsonrpc"`); i > 0 {
			text, _, _ = strings.Cut(text[i:], "\n") // an event
		}
		_ = json.Unmarshal([]byte(text), &reply)
		switch {
		case status == http.StatusServiceUnavailable:
			c.refused++
			c.last = name + " " + text
			time.Sleep(100 * time.Millisecond)
			continue
		case status == http.StatusOK && reply.ID == name && bytes.Contains(reply.Result, []byte(name)):
			c.made.Add(1)
		default:
			c.failed = append(c.failed, fmt.Sprintf("%s: %d %s", name, status, text))
		}
		return
	}
}

// load runs sessions that make calls while change runs.
func (f *farm) load(change func(clients []*frontClient, awaitCalls func())) (clients []*frontClient) {
	f.Helper()
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range frontSessions {
		c := &frontClient{f: f, name: fmt.Sprintf("s%d", i)}
		check(f, c.open())
		clients = append(clients, c)
	}
	for _, c := range clients {
		running.Go(func() { c.run(stop) })
	}
	// Each session makes a call before and after each change.
	change(clients, func() {
		for _, c := range clients {
			for before := c.made.Load(); c.made.Load() == before; time.Sleep(time.Millisecond) {
				if f.Context().Err() != nil {
					return
				}
			}
		}
	})
	close(stop)
	running.Wait()
	return clients
}

// executed returns the number of executions of each call.
func (f *farm) executed() map[string]int {
	f.Helper()
	b, err := os.ReadFile(f.calls)
	check(f, err)
	all := map[string]int{}
	for name := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n") {
		if !strings.HasPrefix(name, "hang-") {
			all[name]++
		}
	}
	return all
}

// answerTime is how long a call may wait for its error after its front was killed.
const answerTime = 5 * time.Second

// hang makes a call in each session that the server never answers. The returned function waits for the errors
// of the calls that were in flight in a front's process when it was killed, and cancels the others.
func (f *farm) hang(clients []*frontClient) (awaitErrors func(pid int, killed time.Time)) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	f.Cleanup(cancel)
	type answer struct {
		status int
		at     time.Time
	}
	answers := map[string]chan answer{}
	for _, c := range clients {
		name, answered := "hang-"+c.name, make(chan answer, 1)
		answers[name] = answered
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"whoami","arguments":{"user":%q}}}`, name, name)
		go func() {
			_, _, status := f.postUntil(ctx, c.session, body)
			answered <- answer{status, time.Now()}
		}()
	}
	fronts := map[string]string{} // the process of the front that has a call
	for ; len(fronts) < len(clients) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		b, _ := os.ReadFile(f.calls)
		for line := range strings.Lines(string(b)) {
			if name, front, hangs := strings.Cut(strings.TrimSpace(line), " "); hangs && strings.HasSuffix(line, "\n") {
				fronts[name] = front
			}
		}
	}
	return func(pid int, killed time.Time) {
		// On a slow machine, add the time that a call needs with a running front.
		_, _, status := f.post("", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
		if status != http.StatusOK {
			f.Errorf("a new session: %d", status)
		}
		limit, n := answerTime+time.Since(killed), 0
		for _, c := range clients {
			name := "hang-" + c.name
			if fronts[name] != fmt.Sprint(pid) { // otherwise its front would wait for it when it drains
				f.post(c.session, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q}}`, name))
				continue
			}
			n++
			if a := <-answers[name]; a.status != http.StatusBadGateway || a.at.Sub(killed) > limit {
				f.Errorf("%s: %d after %v, want 502 within %v", name, a.status, a.at.Sub(killed), limit)
			}
		}
		if n == 0 {
			f.Error("the front had no call in flight")
		}
		f.Logf("%d calls of the killed front got an error", n)
	}
}

func testRollingRestart(t *testing.T) {
	f := newFarm(t, true) // as with systemd: a socket stays open while its front is restarted
	clients := f.load(func(_ []*frontClient, awaitCalls func()) {
		for i := range f.fronts {
			awaitCalls()
			_ = f.fronts[i].Process.Signal(syscall.SIGTERM)
			if err := f.fronts[i].Wait(); err != nil {
				t.Errorf("front %d: %v", i, err)
			}
			f.start(i)
			awaitCalls()
		}
	})
	executed, made, refused := f.executed(), 0, 0
	for _, c := range clients {
		made += int(c.made.Load())
		if refused += c.refused; c.refused > 0 {
			t.Error(c.refused, c.last)
		}
		for _, failed := range c.failed {
			t.Error(failed)
		}
	}
	for name, n := range executed {
		if n != 1 {
			t.Errorf("%s was executed %d times", name, n)
		}
	}
	if len(executed) != made || refused > 0 {
		t.Errorf("%d calls were executed, %d answered, %d refused", len(executed), made, refused)
	}
	t.Logf("%d calls", made)
}

func testFrontKilled(t *testing.T) {
	f := newFarm(t, false)
	clients := f.load(func(clients []*frontClient, awaitCalls func()) {
		awaitCalls()
		awaitErrors := f.hang(clients)
		killed := time.Now()
		_ = f.fronts[1].Process.Kill()
		_ = f.fronts[1].Wait()
		awaitErrors(f.fronts[1].Process.Pid, killed)
		awaitCalls()
	})
	executed, made, failed, refused := f.executed(), 0, 0, 0
	for _, c := range clients {
		made += int(c.made.Load())
		failed += len(c.failed)
		refused += c.refused
		if len(c.failed) > 1 { // one may have been in flight when its front was killed
			t.Errorf("%s: %d calls failed: %s", c.name, len(c.failed), c.failed)
		}
	}
	for name, n := range executed {
		if n != 1 {
			t.Errorf("%s was executed %d times", name, n)
		}
	}
	if len(executed) < made || len(executed) > made+failed {
		t.Errorf("%d calls were executed, %d answered, %d failed", len(executed), made, failed)
	}
	t.Logf("%d calls, %d failed, %d refused", made, failed, refused)
}
