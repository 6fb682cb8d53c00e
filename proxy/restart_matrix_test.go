package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
)

// The dimensions of the restart matrix: the client's protocol revision, when and how the server
// ends, and what the next server does.
var (
	restartEras    = []string{"2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"}
	restartMoments = []string{
		"before the handshake", "between result and initialized", "idle", "a call runs", "100 calls run", "an array runs",
		"a line is half written", "page 2 of 3", "the server asks", "subscribed", "right after ready", "the client leaves",
	}
	restartEnds = []string{"exit 0", "exit 3", "stdout is closed", "stdin is closed"}
	restartNext = []string{"same", "other list", "other version", "never ready", "dies at once", "dies at initialize", "cannot be executed"}
)

// pairwise returns rows of indices that contain, for any two columns, every pair of values.
// sizes are the numbers of values of the columns.
func pairwise(sizes ...int) (rows [][]int) {
	type pair struct{ a, b, x, y int }
	open := map[pair]bool{}
	for a := range sizes {
		for b := a + 1; b < len(sizes); b++ {
			for x := range sizes[a] {
				for y := range sizes[b] {
					open[pair{a, b, x, y}] = true
				}
			}
		}
	}
	uncovered := func(row []int) (n int) {
		for a := range row {
			for b := a + 1; b < len(row); b++ {
				if open[pair{a, b, row[a], row[b]}] {
					n++
				}
			}
		}
		return n
	}
	for len(open) > 0 {
		var best []int
		eachRow(sizes, func(row []int) {
			if best == nil || uncovered(row) > uncovered(best) {
				best = append([]int(nil), row...)
			}
		})
		for a := range best {
			for b := a + 1; b < len(best); b++ {
				delete(open, pair{a, b, best[a], best[b]})
			}
		}
		rows = append(rows, best)
	}
	return rows
}

// eachRow calls f with every row of indices.
func eachRow(sizes []int, f func(row []int)) {
	row := make([]int, len(sizes))
	for {
		f(row)
		i := 0
		for ; i < len(row); i++ {
			if row[i]++; row[i] < sizes[i] {
				break
			}
			row[i] = 0
		}
		if i == len(row) {
			return
		}
	}
}

// A restartCase is one row of the matrix, and the servers of its session.
type restartCase struct {
	era, moment, end, next string

	t       *testing.T
	mu      sync.Mutex
	servers []*mempipe.Server
	calls   map[string]int // of tools, by the argument of the call
}

func TestRestartMatrix(t *testing.T) {
	rows := pairwise(len(restartEras), len(restartMoments), len(restartEnds), len(restartNext))
	t.Log(len(rows), "rows")
	for _, row := range rows {
		c := &restartCase{era: restartEras[row[0]], moment: restartMoments[row[1]], end: restartEnds[row[2]], next: restartNext[row[3]]}
		t.Run(strings.Join([]string{c.era, c.moment, c.end, c.next}, "/"), func(t *testing.T) {
			c.t, c.calls = t, map[string]int{}
			synctest.Test(t, func(t *testing.T) { c.t = t; c.run() })
		})
	}
}

func (c *restartCase) modern() bool { return c.era == "2026-07-28" }

// start starts the first server, or the next one after a restart.
func (c *restartCase) start(context.Context) (proxy.Upstream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.servers)
	if n == 1 && c.next == "cannot be executed" {
		c.servers = append(c.servers, nil)
		return nil, errors.New("no such file")
	}
	s := mempipe.NewServer(0)
	c.servers = append(c.servers, s)
	go func() {
		err := c.serve(s, n)
		if err == nil {
			<-s.Stopping()
		}
		s.Exit(err)
	}()
	return s, nil
}

// serve is server number n. It answers all requests except calls of the tool "hang", and returns
// nil at the end of its input.
func (c *restartCase) serve(s *mempipe.Server, n int) error {
	if n == 1 && c.next == "dies at once" {
		return errCrash
	}
	lines := bufio.NewScanner(s.In)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var all []json.RawMessage
		if json.Unmarshal(lines.Bytes(), &all) != nil {
			all = []json.RawMessage{bytes.Clone(lines.Bytes())}
		}
		for _, line := range all {
			if err := c.answer(s, n, line); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *restartCase) answer(s *mempipe.Server, n int, line []byte) error {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Name      string
			Cursor    string
			Arguments struct{ N string }
		}
	}
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Errorf("the server reads %q: %v", line, err)
	}
	result := `{"content":[]}`
	switch m.Method {
	case "":
		return nil // the client's reply
	case "initialize":
		version := c.era
		switch {
		case n == 1 && c.next == "dies at initialize":
			return errCrash
		case n == 1 && c.next == "never ready":
			return nil
		case n > 0 && c.next == "other version":
			version = "1999-01-01"
		}
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}`, version)
	case "tools/call":
		c.mu.Lock()
		c.calls[m.Params.Arguments.N]++
		c.mu.Unlock()
		if m.Params.Name == "hang" {
			return nil
		}
	case "tools/list":
		name, next := "a", ""
		if n > 0 && c.next == "other list" {
			name = "b"
		}
		switch {
		case c.moment == "page 2 of 3" && m.Params.Cursor == "":
			next = `,"nextCursor":"2"`
		case c.moment == "page 2 of 3" && m.Params.Cursor == "2" && n == 0:
			return nil // the server ends before it answers
		case m.Params.Cursor == "2":
			next = `,"nextCursor":"3"`
		}
		result = fmt.Sprintf(`{"tools":[{"name":%q}]%s}`, name, next)
	case "subscriptions/listen":
		fmt.Fprintf(s.Out, `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`+"\n", m.ID)
		return nil
	}
	if m.ID != nil {
		fmt.Fprintf(s.Out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
	return nil
}

// kill ends the first server.
func (c *restartCase) kill() {
	c.mu.Lock()
	s := c.servers[0]
	c.mu.Unlock()
	switch c.end {
	case "exit 0":
		s.Exit(nil)
	case "exit 3":
		s.Exit(errCrash)
	case "stdout is closed":
		s.Out.CloseWrite()
	case "stdin is closed": // the server ends a little later
		s.In.CloseRead()
		time.AfterFunc(3*time.Second, func() { s.Exit(errCrash) })
	}
}

// A restartClient is the client of a row. It counts the answers to its requests.
type restartClient struct {
	c       *restartCase
	in, out *mempipe.Pipe
	n       int
	answers map[string]int
	asked   []string
}

func (k *restartClient) write(line string) { io.WriteString(k.in, line+"\n") }

func (k *restartClient) meta() string {
	if k.c.modern() {
		return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},`
	}
	return ""
}

// request returns a request. params are the members of its params.
func (k *restartClient) request(method, params string) string {
	k.n++
	k.asked = append(k.asked, fmt.Sprint(k.n))
	params = strings.TrimSuffix(k.meta()+params, ",")
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, k.n, method, params)
}

func (k *restartClient) call(tool string) string {
	return k.request("tools/call", fmt.Sprintf(`"name":%q,"arguments":{"n":"%d"}`, tool, k.n+1))
}

// read reads and counts the messages that have arrived.
func (k *restartClient) read() {
	synctest.Wait()
	for k.out.Len() > 0 {
		line, err := k.out.ReadLine(time.Second)
		if err != nil {
			return
		}
		var all []json.RawMessage
		if json.Unmarshal(line, &all) != nil {
			all = []json.RawMessage{line}
		}
		for _, one := range all {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if err := json.Unmarshal(one, &m); err != nil {
				k.c.t.Fatalf("%q: %v", line, err)
			}
			if m.Method == "" && m.ID != nil {
				k.answers[string(m.ID)]++
			}
		}
	}
}

// handshake does the handshake of the revision up to the moment at which the server ends. It reports
// whether the server can be restarted from then on.
func (k *restartClient) handshake() (restartable bool) {
	switch {
	case k.c.modern() && k.c.moment == "before the handshake":
		k.write(k.request("server/discover", ""))
		k.read()
		return false
	case k.c.modern():
		k.write(k.request("tools/list", ""))
		k.read()
		return true
	}
	k.write(k.request("initialize", fmt.Sprintf(`"protocolVersion":%q,"capabilities":{}`, k.c.era)))
	if k.c.moment == "before the handshake" {
		return false
	}
	if k.read(); k.c.moment == "between result and initialized" {
		return false
	}
	k.write(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	k.write(k.request("tools/list", ""))
	k.read()
	return true
}

// reachMoment brings the session to the moment at which the server ends. It returns the number of
// requests that stay unanswered while the session continues.
func (k *restartClient) reachMoment() (open int) {
	c := k.c
	switch c.moment {
	case "a call runs":
		k.write(k.call("hang"))
	case "100 calls run":
		for range 100 {
			k.write(k.call("hang"))
		}
	case "an array runs":
		one, two := k.call("hang"), k.call("echo")
		if c.era == "2025-03-26" {
			k.write("[" + one + "," + two + "]")
		} else {
			k.write(one + "\n" + two)
		}
	case "a line is half written":
		k.write(k.call("hang"))
		synctest.Wait()
		io.WriteString(c.servers[0].Out, `{"jsonrpc":"2.0","id":1`)
	case "page 2 of 3":
		k.write(k.request("tools/list", `"cursor":"2"`))
	case "the server asks":
		io.WriteString(c.servers[0].Out, `{"jsonrpc":"2.0","id":"q","method":"ping"}`+"\n")
	case "subscribed":
		if c.modern() {
			k.write(k.request("subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
			k.read()
			return 1
		}
		k.write(k.request("resources/subscribe", `"uri":"file:///a"`))
	case "the client leaves":
		k.in.CloseWrite()
		return 0
	}
	if c.moment != "right after ready" {
		k.read()
	}
	return 0
}

// survives reports whether the session continues after the first server has ended.
func (c *restartCase) survives(restartable bool) bool {
	return restartable && c.moment != "the client leaves" && (c.next != "other version" || c.modern())
}

func (c *restartCase) run() {
	k := &restartClient{c: c, in: mempipe.New(0), out: mempipe.New(0), answers: map[string]int{}}
	over := make(chan error, 1)
	go func() {
		err := proxy.Run(context.Background(), proxy.Options{ClientIn: k.in, ClientOut: k.out, Start: c.start, Restart: &proxy.Restart{Notice: true}})
		k.out.CloseWrite()
		over <- err
	}()
	restartable := k.handshake()
	synctest.Wait()
	open := k.reachMoment()
	c.kill()
	if c.moment != "the client leaves" {
		time.Sleep(5 * time.Minute) // of fake time
	}
	if c.survives(restartable) {
		c.checkSurvives(k, open)
	}
	k.in.CloseWrite()
	if err := <-over; err != nil {
		c.t.Error(err)
	}
	k.read()
	unanswered := 0
	for _, id := range k.asked {
		switch n := k.answers[id]; {
		case n == 0:
			unanswered++
		case n > 1:
			c.t.Errorf("request %s has %d answers", id, n)
		}
	}
	if unanswered > open && c.moment != "the client leaves" {
		c.t.Errorf("%d requests have no answer", unanswered)
	}
	for n, times := range c.calls {
		if times > 1 {
			c.t.Errorf("the server read call %s %d times", n, times)
		}
	}
}

// checkSurvives checks that a call works after the servers had time to start, and that each request
// has an answer by then. A server that has exited with status 0 is started by the first of two calls.
func (c *restartCase) checkSurvives(k *restartClient, open int) {
	for range 2 {
		k.write(k.call("echo"))
		time.Sleep(5 * time.Minute)
	}
	last := fmt.Sprint(k.n)
	if k.read(); k.answers[last] != 1 || c.calls[last] != 1 {
		c.t.Errorf("the call after the restart has %d answers and was read %d times", k.answers[last], c.calls[last])
	}
	if got := len(k.answers); got != len(k.asked)-open {
		c.t.Errorf("%d of %d requests are answered", got, len(k.asked)-open)
	}
}
