package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Flags that select the options of FuzzRelay.
const (
	fuzzEnforce = 1 << iota
	fuzzLayers
	fuzzNoise
)

// FuzzRelay sends two streams through the relay three times: in one piece, in chunks, and as messages
// that the peers have already parsed. The output is the same each time. Without layers it is the input
// without noise. If a layer enforces, it contains no ambiguous message.
func FuzzRelay(f *testing.F) {
	for _, s := range fuzzSeeds(f) {
		for _, flags := range []byte{0, fuzzEnforce, fuzzLayers, fuzzNoise, fuzzEnforce | fuzzLayers} {
			f.Add(s.client, s.server, uint64(0x9e3779b97f4a7c15), flags, uint16(40))
			f.Add(s.client, s.server, uint64(1), flags, uint16(4000))
		}
	}
	for _, n := range []int{64, 4093, 4094, 4095, 8192} { // an Envelope keeps ids of 4 KiB
		long := strings.Repeat("x", n)
		reply := strings.Repeat(" ", n) + `{"jsonrpc":"2.0","id":"` + long + `","result":{"` + long + `":"` + long + `"}}` + "\n"
		call := `{"jsonrpc":"2.0","id":"` + long + `","method":"` + long + `"}` + "\n"
		for _, hold := range []int{32, n - 16, n + 16, 4096} {
			for _, flags := range []byte{0, fuzzEnforce, fuzzLayers} {
				f.Add([]byte(call+call), []byte(reply+strings.TrimSpace(reply)+"\n"+call), uint64(1), flags, uint16(hold))
			}
		}
	}
	f.Fuzz(func(t *testing.T, client, server []byte, cut uint64, flags byte, hold uint16) {
		o := proxy.Options{
			Hold: 16 + int(hold), ForwardNoise: flags&fuzzNoise != 0,
			IDPrefix: "own-",
			Layers:   []middleware.Layer{{Name: "enforce", Enforces: flags&fuzzEnforce != 0}},
		}
		if flags&fuzzLayers != 0 {
			o.Layers = append(o.Layers, idleLayer(), hookLayer())
		}
		whole := relayStreams(t, o, &chunkReader{rest: client, max: 1 << 20}, &chunkReader{rest: server, max: 1 << 20})
		parts := relayStreams(t, o, &chunkReader{rest: client, cut: cut, max: 9}, &chunkReader{rest: server, cut: ^cut, max: 9})
		checkEqual(t, "the server's input", whole.server, parts.server)
		checkEqual(t, "the client's output", whole.client, parts.client)
		checkEqual(t, "attache's own answers", whole.own, parts.own)
		pushed := pushStreams(t, o, client, server)
		checkEqual(t, "the server's input, as messages", whole.server, pushed.server)
		checkEqual(t, "the client's output, as messages", whole.client, pushed.client)
		checkEqual(t, "attache's own answers, as messages", whole.own, pushed.own)
		if !bytes.Contains(slices.Concat(client, server), []byte(ownMark)) {
			checkWellFormed(t, whole.own)
		}
		switch {
		case flags&fuzzEnforce != 0:
			checkUnambiguous(t, whole.server, o.Hold)
		case !bytes.Contains(client, []byte("own-")):
			checkEqual(t, "the server's input, against the client's output", client, whole.server)
		}
		checkServerOutput(t, o, server)
	})
}

// checkWellFormed checks that attache's own answers are valid JSON. It skips arrays, which may
// also contain replies from the server.
func checkWellFormed(t *testing.T, own []byte) {
	for line := range bytes.Lines(own) {
		if line[0] == '{' && (!utf8.Valid(line) || !json.Valid(line)) {
			t.Fatalf("attache wrote invalid JSON: %q", line)
		}
	}
}

// checkServerOutput relays the server's stream with no call in flight. All its messages reach the
// client unchanged.
func checkServerOutput(t *testing.T, o proxy.Options, server []byte) {
	hello := []byte(`{"jsonrpc":"2.0","method":"a"}` + "\n")
	o.Hold = max(o.Hold, len(hello))
	out := relayStreams(t, o, &chunkReader{rest: hello, max: 100}, &chunkReader{rest: server, max: 100})
	if bytes.Contains(server, []byte("own-")) {
		return
	}
	rest := append(out.client, out.own...)
	for line := range bytes.Lines(server) {
		want := line
		if !bytes.HasSuffix(line, []byte("\n")) {
			want = append(bytes.Clone(line), '\n')
		}
		if bytes.HasPrefix(rest, want) {
			rest = rest[len(want):]
		} else if o.ForwardNoise || isMessage(line, o.Hold) {
			t.Fatalf("the server's line %q did not reach the client, which got %q next", line, rest)
		}
	}
	if len(rest) > 0 {
		t.Fatalf("the client got lines that the server did not send: %q", rest)
	}
}

// isMessage reports whether any parser reads a line as a message. A line that begins with more
// white space than the hold limit is not one.
func isMessage(line []byte, hold int) bool {
	var m map[string]json.RawMessage
	if len(bytes.TrimLeft(line[:min(hold, len(line))], " \t\r\n")) == 0 || json.Unmarshal(line, &m) != nil || string(m["jsonrpc"]) != `"2.0"` || bytes.Contains(line, []byte(ownMark)) {
		return false
	}
	var form wire.Message
	form.Reset(wire.Server, line)
	return form.LookEnvelope() && form.HasForm()
}

// ownMark is part of every error that attache itself sends.
const ownMark = `"data":{"source":"attache"}`

func checkEqual(t *testing.T, what string, want, got []byte) {
	t.Helper()
	if !bytes.Equal(want, got) {
		t.Fatalf("%s differs:\n%q\n%q", what, want, got)
	}
}

// checkUnambiguous checks with encoding/json that the lines that reached the server are not
// ambiguous.
func checkUnambiguous(t *testing.T, server []byte, hold int) {
	t.Helper()
	for line := range bytes.Lines(server) {
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			continue
		}
		if len(line) > hold && !bytes.Contains(line, []byte(ownMark)) {
			t.Fatalf("a line of %d bytes reached the server", len(line))
		}
		if bytes.ContainsRune(bytes.TrimSuffix(line, []byte("\r\n")), '\r') || !utf8.Valid(line) {
			t.Fatalf("%q reached the server, which is not UTF-8, or which some readers split into two lines", line)
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := distinctKeys(d); err != nil {
			t.Fatalf("%q reached the server: %v", line, err)
		}
		if _, err := d.Token(); err != io.EOF {
			t.Fatalf("%q reached the server, with trailing data after its value", line)
		}
	}
}

// distinctKeys reads a value and returns an error if an object in it has two members with the same
// name.
func distinctKeys(d *json.Decoder) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for d.More() {
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if seen[key.(string)] {
				return fmt.Errorf("two members have the name %q", key)
			}
			seen[key.(string)] = true
		}
		if err := distinctKeys(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// A relayOutput is the output of a relay: the server's input, the client's output, and attache's
// own answers to the client.
type relayOutput struct{ server, client, own []byte }

// relayStreams relays the client's stream and then the server's stream.
func relayStreams(t *testing.T, o proxy.Options, client, server io.Reader) relayOutput {
	t.Helper()
	o.ClientIn = client
	up := newRecordedServer(server)
	return relayWith(t, o, up, up)
}

// pushStreams is relayStreams for peers that push messages, as HTTP peers do.
func pushStreams(t *testing.T, o proxy.Options, client, server []byte) relayOutput {
	t.Helper()
	o.ClientLines = linePusher{wire.Client, client}
	up := newRecordedServer(nil)
	return relayWith(t, o, pushingServer{up, linePusher{wire.Server, server}}, up)
}

// relayWith runs the relay with the server, of which up is the recording part.
func relayWith(t *testing.T, o proxy.Options, server proxy.Upstream, up *recordedServer) relayOutput {
	t.Helper()
	var out lockedBuffer
	o.ClientOut = &out
	o.ClientReads = func() bool { return true }
	o.Start = func(context.Context) (proxy.Upstream, error) { return server, nil }
	watchdog := time.AfterFunc(2*time.Minute, func() {
		stacks := make([]byte, 1<<20)
		panic(fmt.Sprintf("the relay is stuck:\n%s", stacks[:runtime.Stack(stacks, true)]))
	})
	defer watchdog.Stop()
	testkit.Check(t, proxy.Run(t.Context(), o))
	s := relayOutput{server: up.in.Bytes()}
	for line := range bytes.Lines(out.Bytes()) {
		// attache's own answers may overtake lines from the server.
		if bytes.Contains(line, []byte(ownMark)) {
			s.own = append(s.own, line...)
		} else {
			s.client = append(s.client, line...)
		}
	}
	return s
}

// A recordedServer records its input, and sends out when its input has ended.
type recordedServer struct {
	in        lockedBuffer
	out       io.Reader
	closeOnce sync.Once
	closed    chan struct{} // closed when the input has ended
	endOnce   sync.Once
	ended     chan struct{} // closed when out was sent
}

func newRecordedServer(out io.Reader) *recordedServer {
	return &recordedServer{out: out, closed: make(chan struct{}), ended: make(chan struct{})}
}

func (u *recordedServer) Stdin() io.WriteCloser       { return u }
func (u *recordedServer) Stdout() io.Reader           { return recordedOutput{u} }
func (u *recordedServer) Stop()                       { u.Close(); <-u.ended }
func (u *recordedServer) Wait() error                 { return nil }
func (u *recordedServer) Write(b []byte) (int, error) { return u.in.Write(b) }
func (u *recordedServer) Close() error                { u.closeOnce.Do(func() { close(u.closed) }); return nil }

// A linePusher pushes the lines of a stream as messages that it has scanned.
type linePusher struct {
	from wire.Peer
	text []byte
}

func (p linePusher) Push(to wire.Sink) { go p.push(to) }

func (p linePusher) push(to wire.Sink) {
	defer to.End()
	try, _ := to.(wire.Trier)
	for line := range bytes.Lines(p.text) {
		line = bytes.Clone(line)
		var m wire.Message
		switch m.Reset(p.from, line); {
		case len(m.LineEnd()) == 0:
			_ = to.Lines(nil, bytes.NewReader(line))
			return
		case p.from == wire.Client || len(line)%2 == 0:
			if new(wire.Scanner).Look(&m); !m.Plain() || m.Kind() == wire.Batch {
				m.LookEnvelope()
			}
		default:
			m.LookEnvelope()
		}
		if m.Kind() == wire.Unreadable {
			m.Reset(p.from, line)
		}
		if (try == nil || !try.Try(&m)) && to.Line(&m, false) != nil {
			return
		}
		for i := range line {
			line[i] = '!' // the relay must not keep these bytes
		}
	}
}

// A pushingServer is a recordedServer that pushes its lines as messages, and accepts some of the
// client's messages with Take.
type pushingServer struct {
	*recordedServer
	pusher linePusher
}

func (u pushingServer) Stdin() io.WriteCloser { return u }

func (u pushingServer) Push(to wire.Sink) {
	go func() {
		<-u.closed
		defer u.endOnce.Do(func() { close(u.ended) })
		u.pusher.push(to)
	}()
}

// Take implements wire.MessageTaker.
func (u pushingServer) Take(m *wire.Message) bool {
	if !m.Plain() || m.Kind() != wire.Request {
		return false
	}
	_, _ = u.Write(m.Line())
	return true
}

type recordedOutput struct{ u *recordedServer }

func (o recordedOutput) Read(b []byte) (int, error) {
	<-o.u.closed
	n, err := o.u.out.Read(b)
	if err != nil {
		o.u.endOnce.Do(func() { close(o.u.ended) })
	}
	return n, err
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lockedBuffer) Bytes() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.buf.Bytes())
}

// chunkReader reads a stream in chunks of one to max bytes. cut is the seed for their sizes.
type chunkReader struct {
	rest []byte
	cut  uint64
	max  int
}

func (p *chunkReader) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	p.cut = p.cut*6364136223846793005 + 1442695040888963407
	n := copy(b, p.rest[:min(len(p.rest), 1+int(p.cut>>33)%p.max)])
	p.rest = p.rest[n:]
	return n, nil
}

type fuzzSeed struct{ client, server []byte }

// fuzzSeeds makes one seed from each script: everything that each peer sends.
func fuzzSeeds(f *testing.F) []fuzzSeed {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		f.Fatal("no scripts")
	}
	sent := regexp.MustCompile(`^(client|server)-?>(q?) (.*)$`)
	var out []fuzzSeed
	for _, name := range files {
		data, err := os.ReadFile(name)
		testkit.Check(f, err)
		var s fuzzSeed
		for line := range bytes.Lines(data) {
			m := sent.FindSubmatch(bytes.TrimSuffix(line, []byte("\n")))
			if m == nil {
				continue
			}
			raw := append(m[3], '\n')
			if len(m[2]) > 0 {
				text, err := strconv.Unquote(string(m[3]))
				testkit.Check(f, err)
				raw = []byte(text)
			}
			if string(m[1]) == "client" {
				s.client = append(s.client, raw...)
			} else {
				s.server = append(s.server, raw...)
			}
		}
		out = append(out, s)
	}
	return out
}
