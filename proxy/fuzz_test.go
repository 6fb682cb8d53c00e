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

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/wire"
)

// How FuzzRelay sets the relay up, as bits.
const (
	fuzzEnforce = 1 << iota
	fuzzLayers
	fuzzNoise
)

// FuzzRelay sends two streams through the relay three times: in one piece, in pieces, and as messages
// that the peers have read already. The output is the same each time. Without layers and rules it is
// the input without noise. With a rule that enforces, it has no ambiguous message.
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
			Layers:   []middleware.Layer{{Name: "enforces", Enforces: flags&fuzzEnforce != 0}},
		}
		if flags&fuzzLayers != 0 {
			o.Layers = append(o.Layers, idle(), hooked())
		}
		whole := relayStreams(t, o, &pieces{rest: client, max: 1 << 20}, &pieces{rest: server, max: 1 << 20})
		parts := relayStreams(t, o, &pieces{rest: client, cut: cut, max: 9}, &pieces{rest: server, cut: ^cut, max: 9})
		same(t, "the server's input", whole.server, parts.server)
		same(t, "the client's output", whole.client, parts.client)
		same(t, "attache's own answers", whole.own, parts.own)
		pushed := pushStreams(t, o, client, server)
		same(t, "the server's input, as messages", whole.server, pushed.server)
		same(t, "the client's output, as messages", whole.client, pushed.client)
		same(t, "attache's own answers, as messages", whole.own, pushed.own)
		if !bytes.Contains(slices.Concat(client, server), []byte(ownMark)) {
			wellFormed(t, whole.own)
		}
		switch {
		case flags&fuzzEnforce != 0:
			nothingAmbiguous(t, whole.server, o.Hold)
		case !bytes.Contains(client, []byte("own-")):
			same(t, "the server's input, against the client's output", client, whole.server)
		}
		serverAlone(t, o, server)
	})
}

// wellFormed looks at the answers of attache's own that stand alone: in an array
// there may be replies of the server's.
func wellFormed(t *testing.T, own []byte) {
	for line := range bytes.Lines(own) {
		if line[0] == '{' && (!utf8.Valid(line) || !json.Valid(line)) {
			t.Fatalf("attache wrote %q", line)
		}
	}
}

// serverAlone relays the server's stream with no call in flight.
func serverAlone(t *testing.T, o proxy.Options, server []byte) {
	hello := []byte(`{"jsonrpc":"2.0","method":"a"}` + "\n")
	o.Hold = max(o.Hold, len(hello))
	out := relayStreams(t, o, &pieces{rest: hello, max: 100}, &pieces{rest: server, max: 100})
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
			t.Fatalf("the line %q of the server's did not reach the client, which has %q next", line, rest)
		}
	}
	if len(rest) > 0 {
		t.Fatalf("the client got what the server did not send: %q", rest)
	}
}

// isMessage reports whether a line is a message by anybody's reading. One that begins with more
// white space than can be held is none.
func isMessage(line []byte, hold int) bool {
	var m map[string]json.RawMessage
	if len(bytes.TrimLeft(line[:min(hold, len(line))], " \t\r\n")) == 0 || json.Unmarshal(line, &m) != nil || string(m["jsonrpc"]) != `"2.0"` || bytes.Contains(line, []byte(ownMark)) {
		return false
	}
	var form wire.Message
	form.Reset(wire.Server, line)
	return form.LookEnvelope() && form.HasForm()
}

const ownMark = `"data":{"source":"attache"}`

func same(t *testing.T, what string, want, got []byte) {
	t.Helper()
	if !bytes.Equal(want, got) {
		t.Fatalf("%s differs:\n%q\n%q", what, want, got)
	}
}

// nothingAmbiguous holds what reached the server against encoding/json.
func nothingAmbiguous(t *testing.T, server []byte, hold int) {
	t.Helper()
	for line := range bytes.Lines(server) {
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			continue
		}
		if len(line) > hold && !bytes.Contains(line, []byte(ownMark)) {
			t.Fatalf("a line of %d bytes reached the server", len(line))
		}
		if bytes.ContainsRune(bytes.TrimSuffix(line, []byte("\r\n")), '\r') || !utf8.Valid(line) {
			t.Fatalf("%q reached the server, which is no text or two lines for some", line)
		}
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := distinctKeys(d); err != nil {
			t.Fatalf("%q reached the server: %v", line, err)
		}
		if _, err := d.Token(); err != io.EOF {
			t.Fatalf("%q reached the server, with something behind its value", line)
		}
	}
}

// distinctKeys reads a value and returns an error if an object in it has two
// members of one name.
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

// A streams is what came out of a relay.
type streams struct{ server, client, own []byte }

// relayStreams relays the client's stream and then the server's.
func relayStreams(t *testing.T, o proxy.Options, client, server io.Reader) streams {
	t.Helper()
	o.ClientIn = client
	up := newTape(server)
	return relayTape(t, o, up, up)
}

// pushStreams is relayStreams for peers that hand over messages, as those that speak HTTP do.
func pushStreams(t *testing.T, o proxy.Options, client, server []byte) streams {
	t.Helper()
	o.ClientLines = pusher{wire.Client, client}
	up := newTape(nil)
	return relayTape(t, o, pushingTape{up, pusher{wire.Server, server}}, up)
}

func relayTape(t *testing.T, o proxy.Options, server proxy.Upstream, up *tape) streams {
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
	if err := proxy.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	s := streams{server: up.in.Bytes()}
	for line := range bytes.Lines(out.Bytes()) {
		// Answers of attache's own may overtake each other's company.
		if bytes.Contains(line, []byte(ownMark)) {
			s.own = append(s.own, line...)
		} else {
			s.client = append(s.client, line...)
		}
	}
	return s
}

// A tape is a server that speaks when its input has ended.
type tape struct {
	in     lockedBuffer
	out    io.Reader
	once   sync.Once
	closed chan struct{}
	played sync.Once
	over   chan struct{}
}

func newTape(out io.Reader) *tape {
	return &tape{out: out, closed: make(chan struct{}), over: make(chan struct{})}
}

func (u *tape) Stdin() io.WriteCloser       { return u }
func (u *tape) Stdout() io.Reader           { return tapeOut{u} }
func (u *tape) Stop()                       { u.Close(); <-u.over }
func (u *tape) Wait() error                 { return nil }
func (u *tape) Write(b []byte) (int, error) { return u.in.Write(b) }
func (u *tape) Close() error                { u.once.Do(func() { close(u.closed) }); return nil }

// A pusher hands over the lines of a stream as messages that it has looked at.
type pusher struct {
	from wire.Peer
	text []byte
}

func (p pusher) Push(to wire.Sink) { go p.push(to) }

func (p pusher) push(to wire.Sink) {
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
			line[i] = '!' // the bytes are the pusher's again
		}
	}
}

// A pushingTape is a tape that hands over its lines as messages, and takes some of the client's.
type pushingTape struct {
	*tape
	pusher pusher
}

func (u pushingTape) Stdin() io.WriteCloser { return u }

func (u pushingTape) Push(to wire.Sink) {
	go func() {
		<-u.closed
		defer u.played.Do(func() { close(u.over) })
		u.pusher.push(to)
	}()
}

// Take implements wire.MessageTaker.
func (u pushingTape) Take(m *wire.Message) bool {
	if !m.Plain() || m.Kind() != wire.Request {
		return false
	}
	_, _ = u.Write(m.Line())
	return true
}

type tapeOut struct{ u *tape }

func (o tapeOut) Read(b []byte) (int, error) {
	<-o.u.closed
	n, err := o.u.out.Read(b)
	if err != nil {
		o.u.played.Do(func() { close(o.u.over) })
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

// pieces reads a stream in pieces of one to max bytes, as the bits of cut say.
type pieces struct {
	rest []byte
	cut  uint64
	max  int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	p.cut = p.cut*6364136223846793005 + 1442695040888963407
	n := copy(b, p.rest[:min(len(p.rest), 1+int(p.cut>>33)%p.max)])
	p.rest = p.rest[n:]
	return n, nil
}

type fuzzSeed struct{ client, server []byte }

// fuzzSeeds makes a seed of each script: all that either peer sends.
func fuzzSeeds(f *testing.F) []fuzzSeed {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		f.Fatal("no scripts")
	}
	sent := regexp.MustCompile(`^(client|server)-?>(q?) (.*)$`)
	var out []fuzzSeed
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var s fuzzSeed
		for line := range bytes.Lines(data) {
			m := sent.FindSubmatch(bytes.TrimSuffix(line, []byte("\n")))
			if m == nil {
				continue
			}
			raw := append(m[3], '\n')
			if len(m[2]) > 0 {
				text, err := strconv.Unquote(string(m[3]))
				if err != nil {
					f.Fatal(err)
				}
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
