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

// A link is a relay with a client and a server that trade lines as fast as it
// lets them.
type link struct {
	clientIn, serverIn   io.Reader
	clientOut, serverOut io.Writer
	buf                  []byte
}

func newLink(tb testing.TB, layers ...middleware.Layer) *link {
	s := proxytest.Setup{
		Options:  proxy.Options{Layers: layers, Log: slog.New(slog.DiscardHandler)},
		PipeSize: 64 << 10,
	}.Start(tb)
	l := &link{buf: make([]byte, 128<<10)}
	l.clientIn, l.clientOut = s.Client.Raw()
	l.serverIn, l.serverOut = s.Server.Raw()
	return l
}

// trade moves a call and its reply.
func (l *link) trade(call, reply []byte) {
	l.clientOut.Write(call)
	l.receive(l.serverIn, call)
	l.serverOut.Write(reply)
	l.receive(l.clientIn, reply)
}

func (l *link) receive(from io.Reader, want []byte) {
	n, err := io.ReadFull(from, l.buf[:len(want)])
	if err != nil || !bytes.Equal(l.buf[:n], want) {
		panic(fmt.Sprintf("%q came, %q was sent", l.buf[:n], want))
	}
}

func smallCall() (call, reply []byte) {
	return []byte(`{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 100) + `"}}}` + "\n"),
		[]byte(`{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"` + strings.Repeat("y", 100) + `"}]}}` + "\n")
}

// idle is a layer that passes everything on.
func idle() middleware.Layer {
	return middleware.Layer{Name: "idle", Wrap: func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error { return next(ctx, m) }
	}}
}

// hooked is a layer that asks for every reply and does nothing with it.
func hooked() middleware.Layer {
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
	{"three idle", []middleware.Layer{idle(), idle(), idle()}},
	{"hooked", []middleware.Layer{idle(), hooked()}},
}

// An untouched call and its reply allocate nothing.
func TestAllocations(t *testing.T) {
	for _, c := range benchLayers {
		t.Run(c.name, func(t *testing.T) {
			l := newLink(t, c.layers...)
			call, reply := smallCall()
			for range 100 { // buffers grow, tables too
				l.trade(call, reply)
			}
			if n := testing.AllocsPerRun(1000, func() { l.trade(call, reply) }); n != 0 {
				t.Errorf("a call and its reply allocate %v times", n)
			}
		})
	}
}

func BenchmarkCall(b *testing.B) {
	for _, c := range benchLayers {
		b.Run(c.name, func(b *testing.B) {
			l := newLink(b, c.layers...)
			call, reply := smallCall()
			l.trade(call, reply)
			b.ReportAllocs()
			for b.Loop() {
				l.trade(call, reply)
			}
		})
	}
}

// BenchmarkPipelined has 64 calls in flight.
func BenchmarkPipelined(b *testing.B) {
	for _, c := range benchLayers {
		b.Run(c.name, func(b *testing.B) {
			l := newLink(b, c.layers...)
			call, reply := smallCall()
			calls, replies := bytes.Repeat(call, 64), bytes.Repeat(reply, 64)
			l.trade(calls, replies)
			b.ReportAllocs()
			for b.Loop() {
				l.trade(calls, replies)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/call")
		})
	}
}

// BenchmarkLarge moves replies of 256 KiB and of 32 MiB, the second over the
// hold limit.
func BenchmarkLarge(b *testing.B) {
	for _, size := range []int{256 << 10, 32 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			l := newLink(b)
			call, _ := smallCall()
			reply := []byte(`{"jsonrpc":"2.0","id":12345,"result":{"content":"` + strings.Repeat("y", size) + `"}}` + "\n")
			b.SetBytes(int64(len(reply)))
			b.ReportAllocs()
			for b.Loop() {
				l.clientOut.Write(call)
				l.receive(l.serverIn, call)
				go l.serverOut.Write(reply)
				for n := 0; n < len(reply); {
					k, err := l.clientIn.Read(l.buf)
					if n += k; err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
