//go:build unix

package child

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A blockedSink blocks its writes until open is closed.
type blockedSink struct {
	entered chan int // receives the length of each Write
	open    chan struct{}
	mu      sync.Mutex
	got     bytes.Buffer
}

func newBlockedSink() *blockedSink {
	return &blockedSink{entered: make(chan int, 1000), open: make(chan struct{})}
}

func (g *blockedSink) Write(b []byte) (int, error) {
	g.entered <- len(b)
	<-g.open
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.Write(b)
}

func (g *blockedSink) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.got.String()
}

func TestStderrPassesUnchanged(t *testing.T) {
	want := make([]byte, 100_000)
	for i := range want {
		want[i] = byte(rand.N(256))
	}
	var got bytes.Buffer
	o := sh("exec cat >&2")
	o.Stderr = &got
	p := start(t, o)
	// In small pieces, so that the sink keeps up on a slow machine too.
	for b := want; len(b) > 0; b = b[min(1000, len(b)):] {
		p.Stdin().Write(b[:min(1000, len(b))])
	}
	p.Stop(t.Context())
	if p.Dropped() == 0 && !bytes.Equal(got.Bytes(), want) {
		t.Errorf("got %d bytes, which differ from those written", got.Len())
	}
	if p.Dropped() > 0 {
		t.Logf("the sink did not keep up: %d bytes dropped", p.Dropped())
	}
}

// Nothing is lost when a process writes more than the queue holds and the sink works.
func TestStderrInOneWrite(t *testing.T) {
	const size = 5 << 20
	f, err := os.Create(t.TempDir() + "/stderr")
	check(t, err)
	defer f.Close()
	o := sh(fmt.Sprintf("yes 0123456789 | head -c %d >&2; echo; echo done; read x", size))
	o.Stderr = f
	p := start(t, o)
	expect(t, lines(p), "")
	p.Stop(t.Context())
	info, err := f.Stat()
	check(t, err)
	if info.Size() != size || p.Dropped() != 0 {
		t.Errorf("%d bytes in the file, %d dropped; written %d", info.Size(), p.Dropped(), size)
	}
}

func TestStderrToAFile(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/stderr")
	check(t, err)
	defer f.Close()
	o := sh("echo one >&2; printf two >&2")
	o.Stderr = f
	p := start(t, o)
	p.Wait()
	if got, _ := os.ReadFile(f.Name()); string(got) != "one\ntwo" {
		t.Errorf("file %q", got)
	}
	if got := fmt.Sprintf("%q", p.Tail()); got != `["one" "two"]` {
		t.Errorf("tail %s", got)
	}
}

// A client that does not read attache's stderr blocks neither the server nor attache.
func TestStderrFloodWithABlockedSink(t *testing.T) {
	t.Parallel()
	sink := newBlockedSink()
	defer close(sink.open)
	o := sh("seq 1 300000 >&2; echo done; read x; exit 6")
	o.Stderr, o.Drain = sink, 20*time.Millisecond
	p := start(t, o)
	expect(t, lines(p), "done") // the server wrote 2 MB without blocking
	p.stderr.mu.Lock()
	if n := cap(p.stderr.queue); n > 2*queueSize {
		t.Errorf("the queue has %d bytes", n)
	}
	p.stderr.mu.Unlock()
	if exit := p.Stop(t.Context()); exit.Code != 6 {
		t.Errorf("Stop() = %+v", exit)
	}
	if p.Dropped() == 0 {
		t.Error("nothing was counted as dropped")
	}
	if tail := p.Tail(); len(tail) != 20 || tail[19] != "300000" {
		t.Errorf("tail %q", tail)
	}
}

// The tail is complete even if the process ends while the copy waits for the sink. The times are those of a
// fake clock, which stands still while stderr is read.
func TestTailWithABlockedSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := newBlockedSink()
		defer close(sink.open)
		o := sh("seq 1 22000 >&2; exit 6") // more than the queue holds, and less than with the pipe
		o.Stderr, o.Drain = sink, 20*time.Millisecond
		for range 5 {
			p := start(t, o)
			p.Wait()
			select {
			case <-p.stderr.drained:
			default:
				t.Error("stderr was not read to its end")
			}
			if tail := p.Tail(); len(tail) != 20 || tail[19] != "22000" {
				t.Errorf("tail %q", tail)
			}
		}
	})
}

// After a blocked write, the copy continues at the beginning of a line, and Dropped is correct.
func TestStderrAfterABlockedWrite(t *testing.T) {
	t.Parallel()
	const flood = 300000
	sink := newBlockedSink()
	o := sh(fmt.Sprintf("echo 1 >&2; read x; seq 2 %d >&2; echo done; read x; echo last >&2", flood))
	o.Stderr = sink
	p := start(t, o)
	total := <-sink.entered // the sink blocks at the first line
	fmt.Fprintln(p.Stdin(), "go on")
	expect(t, lines(p), "done")
	close(sink.open)
	total += <-sink.entered // the queue has room again
	p.Stop(t.Context())
	for len(sink.entered) > 0 {
		total += <-sink.entered
	}
	got := sink.String()
	if total != len(got) || !strings.HasSuffix(got, "\nlast\n") {
		t.Errorf("%d bytes of %d, ending in %q", len(got), total, got[max(len(got)-40, 0):])
	}
	if cut := cutLines(strings.TrimSuffix(got, "last\n")); cut > 2 {
		t.Errorf("%d lines are incomplete", cut)
	}
	written := len("last\n")
	for i := 1; i <= flood; i++ {
		written += len(fmt.Sprint(i)) + 1
	}
	if sum := len(got) + int(p.Dropped()); sum != written {
		t.Errorf("%d bytes got, %d dropped; written %d", len(got), p.Dropped(), written)
	}
}

type brokenSink struct{}

func (brokenSink) Write(b []byte) (int, error) { return 0, errors.New("gone") }

func TestStderrSinkFails(t *testing.T) {
	o := sh("seq 1 20000 >&2; exit 2")
	o.Stderr = brokenSink{}
	p := start(t, o)
	if exit := p.Wait(); exit.Code != 2 {
		t.Errorf("Wait() = %+v", exit)
	}
	if want := int64(108894); p.Dropped() != want {
		t.Errorf("dropped %d, want all %d", p.Dropped(), want)
	}
}

// Lines stay complete for any sizes of the reads and any speed of the sink. The seeds are
// fixed, so that a failure can be repeated.
func TestStderrKeepsLinesComplete(t *testing.T) {
	for seed := range uint64(5) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		c := newStderrCopy(nil, newBlockedSink())
		c.writing, c.blocked = true, true // the test empties the queue itself, and waits for nothing
		var in, out bytes.Buffer
		for i := range 40_000 {
			fmt.Fprintf(&in, "%d\n", i+1)
		}
		written, pauses := in.Len(), 1
		for in.Len() > 0 {
			c.add(in.Next(1 + rnd.IntN(largeRead)))
			if len(c.queue) > queueSize+1 {
				t.Fatalf("seed %d: the queue has %d bytes", seed, len(c.queue))
			}
			if len(c.queue) > 0 && rnd.IntN(10) == 0 {
				out.Write(c.next(nil))
				c.blocked = true
				pauses++
			}
		}
		out.Write(c.queue)
		if sum := out.Len() + int(c.dropped); sum != written {
			t.Errorf("seed %d: %d out, %d dropped; written %d", seed, out.Len(), c.dropped, written)
		}
		if cut := cutLines(out.String()); cut > pauses {
			t.Errorf("seed %d: %d lines are incomplete after %d pauses of the sink", seed, cut, pauses)
		}
		if c.dropped == 0 {
			t.Errorf("seed %d: nothing was dropped, so the test proves nothing", seed)
		}
	}
}

// cutLines counts the lines that have only the beginning of a number, because the rest did not
// fit and was replaced by a line end. Such a number is smaller than the one before it, as
// nothing is dropped before the numbers have five digits.
func cutLines(out string) (cut int) {
	before := 0
	for line := range strings.Lines(out) {
		n := 0
		fmt.Sscanln(line, &n)
		if n <= before {
			cut++
			continue
		}
		before = n
	}
	return cut
}

func TestTail(t *testing.T) {
	var twenty, thirty []string
	for i := range 30 {
		thirty = append(thirty, fmt.Sprint("line ", i))
	}
	twenty = thirty[10:]
	full := strings.Repeat("x", tailBytes)
	for _, tt := range []struct {
		name string
		in   []string
		want []string
	}{
		{"nothing", nil, nil},
		{"empty lines", []string{"\n", "\n\n"}, nil},
		{"one", []string{"one\n"}, []string{"one"}},
		{"without line end", []string{"one\ntw", "o"}, []string{"one", "two"}},
		{"Windows lines", []string{"one\r\ntwo\r\n"}, []string{"one", "two"}},
		{"empty line inside", []string{"one\n\ntwo\n"}, []string{"one", "", "two"}},
		{"twenty at most", []string{strings.Join(thirty, "\n") + "\n"}, twenty},
		{"the error before a usage", []string{"starting\nError: no token\n" + strings.Join(thirty, "\n") + "\n"},
			append([]string{"Error: no token", "…"}, thirty[12:]...)},
		{"the error before a stack", []string{"TypeError: x\n" + strings.Join(thirty, "\n")},
			append([]string{"TypeError: x", "…"}, thirty[12:]...)},
		{"the last error in JSON", []string{`{"level":"error"}` + "\n" + `{"level":"fatal","msg":"y"}` + "\n" + strings.Join(thirty, "\n")},
			append([]string{`{"level":"fatal","msg":"y"}`, "…"}, thirty[12:]...)},
		{"an error in the last lines", []string{"Error: retrying\n\nfatal: no token\n" + strings.Join(thirty[:19], "\n") + "\n"},
			append([]string{"fatal: no token"}, thirty[:19]...)},
		{"invalid UTF-8", []string{"a\xffb\n"}, []string{"a\uFFFDb"}},
		{"a line too long", []string{"first\n" + full + "y\n"}, []string{full[2:] + "y"}},
		{"a long line before", []string{full, "\nlast\n"}, []string{"last"}},
		{"more than the tail keeps, in several writes", []string{full[:5000] + "\n", full[:5000] + "\n", full[:5000] + "\n", "last\n"},
			[]string{full[:5000], "last"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var tail tail
			for _, s := range tt.in {
				tail.add([]byte(s))
			}
			got := tail.lines()
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("lines() = %.200q, want %.200q", got, tt.want)
			}
			if len(tail.buf) > 2*tailBytes {
				t.Errorf("the tail keeps %d bytes", len(tail.buf))
			}
		})
	}
}

// The tail is the same for any sizes of the reads.
func TestTailInSeveralWrites(t *testing.T) {
	var in bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&in, "%d %s\n", i, strings.Repeat("x", i%700))
	}
	var whole tail
	whole.add(in.Bytes())
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		var split tail
		for b := in.Bytes(); len(b) > 0; {
			n := min(1+rnd.IntN(12_000), len(b))
			split.add(b[:n])
			b = b[n:]
		}
		if got, want := fmt.Sprint(split.lines()), fmt.Sprint(whole.lines()); got != want {
			t.Errorf("seed %d: %.300s\nwant %.300s", seed, got, want)
		}
	}
}
