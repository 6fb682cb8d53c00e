package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A benchSession is a relay whose client and server exchange lines without pauses.
type benchSession struct {
	clientIn, serverIn   io.Reader
	clientOut, serverOut io.Writer
	buf                  []byte
}

func newBenchSession(tb testing.TB, layers ...middleware.Layer) *benchSession {
	s := proxytest.Setup{
		Options:  proxy.Options{Layers: layers, Log: slog.New(slog.DiscardHandler)},
		PipeSize: 64 << 10,
	}.Start(tb)
	b := &benchSession{buf: make([]byte, 128<<10)}
	b.clientIn, b.clientOut = s.Client.Raw()
	b.serverIn, b.serverOut = s.Server.Raw()
	return b
}

// roundTrip sends a call and its reply through the relay.
func (s *benchSession) roundTrip(call, reply []byte) {
	s.clientOut.Write(call)
	s.receive(s.serverIn, call)
	s.serverOut.Write(reply)
	s.receive(s.clientIn, reply)
}

func (s *benchSession) receive(from io.Reader, want []byte) {
	n, err := io.ReadFull(from, s.buf[:len(want)])
	if err != nil || !bytes.Equal(s.buf[:n], want) {
		panic(fmt.Sprintf("received %q, %q was sent", s.buf[:n], want))
	}
}

func smallCall() (call, reply []byte) {
	return []byte(`{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 100) + `"}}}` + "\n"),
		[]byte(`{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"` + strings.Repeat("y", 100) + `"}]}}` + "\n")
}

// idleLayer passes all messages on unchanged.
func idleLayer() middleware.Layer {
	return middleware.Layer{Name: "idle", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error { return next(ctx, m) }
	}}
}

// hookLayer registers a hook for every reply, which does nothing.
func hookLayer() middleware.Layer {
	hook := func(context.Context, *wire.Message) error { return nil }
	return middleware.Layer{Name: "hooked", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			middleware.CallFrom(ctx).OnReply(hook)
			return next(ctx, m)
		}
	}}
}

var benchLayers = []struct {
	name   string
	layers []middleware.Layer
}{
	{"none", nil},
	{"three idle", []middleware.Layer{idleLayer(), idleLayer(), idleLayer()}},
	{"hooked", []middleware.Layer{idleLayer(), hookLayer()}},
}

// A call and its reply that no layer edits allocate nothing.
func TestAllocations(t *testing.T) {
	for _, c := range benchLayers {
		t.Run(c.name, func(t *testing.T) {
			s := newBenchSession(t, c.layers...)
			call, reply := smallCall()
			for range 100 { // until the buffers and tables have grown
				s.roundTrip(call, reply)
			}
			if n := testing.AllocsPerRun(1000, func() { s.roundTrip(call, reply) }); n != 0 {
				t.Errorf("a call and its reply allocate %v times", n)
			}
		})
	}
}

func BenchmarkCall(b *testing.B) {
	for _, c := range benchLayers {
		b.Run(c.name, func(b *testing.B) {
			s := newBenchSession(b, c.layers...)
			call, reply := smallCall()
			s.roundTrip(call, reply)
			b.ReportAllocs()
			for b.Loop() {
				s.roundTrip(call, reply)
			}
		})
	}
}

// BenchmarkPipelined has 64 calls in flight.
func BenchmarkPipelined(b *testing.B) {
	for _, c := range benchLayers {
		b.Run(c.name, func(b *testing.B) {
			s := newBenchSession(b, c.layers...)
			call, reply := smallCall()
			calls, replies := bytes.Repeat(call, 64), bytes.Repeat(reply, 64)
			s.roundTrip(calls, replies)
			b.ReportAllocs()
			for b.Loop() {
				s.roundTrip(calls, replies)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/call")
		})
	}
}

// BenchmarkLarge sends replies of 256 KiB and of 32 MiB. Only the second size is over the hold
// limit.
func BenchmarkLarge(b *testing.B) {
	for _, size := range []int{256 << 10, 32 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := newBenchSession(b)
			call, _ := smallCall()
			reply := []byte(`{"jsonrpc":"2.0","id":12345,"result":{"content":"` + strings.Repeat("y", size) + `"}}` + "\n")
			b.SetBytes(int64(len(reply)))
			b.ReportAllocs()
			for b.Loop() {
				s.clientOut.Write(call)
				s.receive(s.serverIn, call)
				go s.serverOut.Write(reply)
				for n := 0; n < len(reply); {
					k, err := s.clientIn.Read(s.buf)
					if n += k; err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
