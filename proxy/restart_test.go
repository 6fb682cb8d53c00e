package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
)

// A dyingServer is a server and its restarts. Each run ends at a point that the test sets. It
// counts the calls that reach any run.
type dyingServer struct {
	cut   []int // for each run, the bytes of output after which it ends; 0 for never
	lines []int // for each run, the input line before which it ends; 0 for never
	leave bool  // exit with status 0 in place of a crash

	mu     sync.Mutex
	runs   int
	calls  map[string]int // of tools, by name
	faults []string
}

var errCrash = errors.New("exit status 3")

func (d *dyingServer) start(context.Context) (proxy.Upstream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cut, lines := 0, 0
	if d.runs < len(d.cut) {
		cut = d.cut[d.runs]
	}
	if d.runs < len(d.lines) {
		lines = d.lines[d.runs]
	}
	d.runs++
	return mempipe.Serve(func(in io.Reader, out io.Writer) error {
		err := d.serve(in, &cutWriter{out, cut}, lines)
		if d.leave {
			return nil
		}
		return err
	}), nil
}

// serve answers every request until it ends before line last.
func (d *dyingServer) serve(in io.Reader, out io.Writer, last int) error {
	ready := false
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		if n == last {
			return errCrash
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			d.fault("the server reads %q: %v", lines.Bytes(), err)
		}
		d.mu.Lock()
		switch m.Method {
		case "notifications/initialized":
			ready = true
		case "tools/call":
			d.calls[m.Params.Name]++
		}
		if !ready && m.Method != "initialize" {
			d.faults = append(d.faults, "before the handshake the server reads "+lines.Text())
		}
		d.mu.Unlock()
		if m.ID == nil {
			continue
		}
		result := `{"name":"` + m.Params.Name + `"}`
		if m.Method == "initialize" {
			result = `{"protocolVersion":"2025-11-25","capabilities":{}}`
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result); err != nil {
			return err
		}
	}
	return nil
}

func (d *dyingServer) fault(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults = append(d.faults, fmt.Sprintf(format, args...))
}

// A cutWriter fails after left bytes, or never if left is 0.
type cutWriter struct {
	to   io.Writer
	left int
}

func (w *cutWriter) Write(b []byte) (int, error) {
	if w.left == 0 {
		return w.to.Write(b)
	}
	if len(b) < w.left {
		w.left -= len(b)
		return w.to.Write(b)
	}
	w.to.Write(b[:w.left])
	return 0, errCrash
}

// handshakeOut is the size of the server's output for its handshake.
const handshakeOut = len(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}` + "\n")

// A server may end after any byte of its output: every request gets exactly one answer, no tools/call
// reaches a server twice, and the servers' answers pass unchanged (rules R7 to R9 of
// docs/restart.md).
func TestServerDiesAfterAnyOutput(t *testing.T) {
	const requests = 12
	first := handshakeOut + len(`"i"`) - len("0")
	for _, second := range []int{0, 10, handshakeOut + 30, handshakeOut + 200} {
		for cut := first + 1; cut < first+requests*55; cut += 7 {
			t.Run(fmt.Sprint(cut, " ", second), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkRestarts(t, requests, &dyingServer{cut: []int{cut, second}}) })
			})
		}
	}
}

// The same for servers that end before a line of their input.
func TestServerDiesBeforeAnyInput(t *testing.T) {
	for first := 3; first < 15; first++ {
		for second := range 8 {
			for _, third := range []int{0, 1, 3} {
				t.Run(fmt.Sprint(first, " ", second, " ", third), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						checkRestarts(t, 12, &dyingServer{lines: []int{first, second, third}})
					})
				})
			}
		}
	}
}

// FuzzRestart varies the byte of output and the line of input at which each of three runs of a
// server ends, and whether it crashes or exits. Every request gets exactly one answer, and no call
// reaches a server twice.
func FuzzRestart(f *testing.F) {
	f.Add(uint8(12), uint16(5), uint16(0), uint16(0), uint8(0), uint8(0), uint8(0), false)
	f.Add(uint8(1), uint16(0), uint16(10), uint16(100), uint8(3), uint8(0), uint8(1), true)
	f.Add(uint8(40), uint16(900), uint16(200), uint16(90), uint8(0), uint8(1), uint8(4), false)
	f.Fuzz(func(t *testing.T, requests uint8, cut1, cut2, cut3 uint16, line1, line2, line3 uint8, leave bool) {
		d := &dyingServer{
			cut:   []int{0, int(cut2), int(cut3)},
			lines: []int{0, int(line2), int(line3)},
			leave: leave,
		}
		if cut1 > 0 { // after the handshake; before it the session would end
			d.cut[0] = handshakeOut + len(`"i"`) - len("0") + int(cut1)
		}
		if line1 > 0 {
			d.lines[0] = 2 + int(line1)
		}
		synctest.Test(t, func(t *testing.T) { checkRestarts(t, int(requests)%50, d) })
	})
}

// checkRestarts runs a session in which the client sends requests while d ends and is restarted.
func checkRestarts(t *testing.T, requests int, d *dyingServer) {
	d.calls = map[string]int{}
	clientIn, clientOut := mempipe.New(0), mempipe.New(0)
	over := make(chan error)
	go func() {
		over <- proxy.Run(context.Background(), proxy.Options{ClientIn: clientIn, ClientOut: clientOut, Start: d.start, Restart: &proxy.Restart{}})
	}()
	io.WriteString(clientIn, `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}`+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	synctest.Wait()
	for i := range requests {
		method := "tools/call"
		if i%3 == 1 {
			method = "prompts/get"
		}
		fmt.Fprintf(clientIn, `{"jsonrpc":"2.0","id":%d,"method":"%s","params":{"name":"n%d"}}`+"\n", i, method, i)
		if i%4 == 3 {
			synctest.Wait()
		}
	}
	answers := map[string]int{}
	for range requests + 1 {
		line, err := clientOut.ReadLine(time.Minute)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answers), err)
		}
		checkAnswer(t, line, answers)
	}
	clientIn.CloseWrite()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if rest, _ := clientOut.ReadLine(0); len(rest) > 0 {
		t.Errorf("an answer too many: %s", rest)
	}
	for id, n := range answers {
		if n != 1 {
			t.Errorf("request %s has %d answers", id, n)
		}
	}
	for name, n := range d.calls {
		if n > 1 {
			t.Errorf("the call of %s reached the server %d times", name, n)
		}
	}
	for _, fault := range d.faults {
		t.Error(fault)
	}
}

func checkAnswer(t *testing.T, line []byte, answers map[string]int) {
	t.Helper()
	var m struct {
		ID     json.RawMessage
		Result struct{ Name string }
		Error  *struct{ Data struct{ Reason string } }
	}
	if err := json.Unmarshal(line, &m); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	id := string(m.ID)
	answers[id]++
	switch {
	case m.Error != nil && m.Error.Data.Reason != "server_ended":
		t.Errorf("wrong error: %s", line)
	case m.Error == nil && id != `"i"` && m.Result.Name != "n"+id:
		t.Errorf("request %s has the answer to another request: %s", id, line)
	}
}
