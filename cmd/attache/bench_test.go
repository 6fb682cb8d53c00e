package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/internal/relayed"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// noRelay is the relay of a call that nobody answers.
type noRelay struct{}

func (noRelay) Answer(context.Context, *wire.Message) error { return nil }
func (noRelay) Defer(*wire.Message, relayed.Work)           {}
func (noRelay) Cancelled() bool                             { return false }
func (noRelay) Ask(_ wire.Peer, _ string, _ []byte, _ time.Duration, done func(*wire.Message)) {
	done(nil)
}
func (noRelay) Suspend(_ *wire.Message, ready <-chan struct{}, _ time.Duration, _ relayed.Handler) {
	<-ready
}

// BenchmarkChain measures the layers of a full configuration with one call and its reply, without the relay.
func BenchmarkChain(b *testing.B) {
	parts := strings.Split(page(b, "cmd/attache/testdata/bench.yaml"), "---\n")
	for _, c := range []struct{ name, text string }{
		{"plain", ""},
		{"fill", parts[0]},
		{"pin", parts[0] + parts[1]},
		{"rewrite", parts[0] + parts[2]},
		{"access", parts[0] + parts[3]},
		{"audit", parts[0] + parts[4]},
		{"all", strings.Join(parts, "")},
	} {
		b.Run(c.name, func(b *testing.B) { benchmarkChain(b, c.text) })
	}
}

func benchmarkChain(b *testing.B, text string) {
	dir := b.TempDir()
	file := filepath.Join(dir, "config.yaml")
	key, _ := attachetest.CreateKey(b, filepath.Join(dir, "keys.yaml"), identity.Attributes{User: "ada", Tenant: "acme", Roles: []string{"developer"}, Permissions: []string{"tools:call"}})
	attachetest.WriteFile(b, file, text)
	p := cli.Process{Env: []string{"ATTACHE_CONFIG=" + file, "ATTACHE_API_KEY=" + key}, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}
	s := attachetest.Load(b, p)
	conn := assemble(b, s, assembly.Options{Process: p, Audit: true}, assembly.ConnOptions{Control: new(proxy.Control)})
	defer conn.Shared().Close()
	defer conn.Close()
	layers := conn.Relay().Layers
	h := middleware.Chain(func(context.Context, *wire.Message) error { return nil }, layers...)
	var call relayed.Call
	ctx := &relayed.Context{Context: b.Context(), Call: &call}
	scanner := wire.Scanner{ArgumentNames: middleware.Needs(layers...).ArgumentNames}
	var m wire.Message
	roundTrip := func(frame, answer []byte) {
		m.Reset(wire.Client, frame)
		scanner.Look(&m)
		call.Reset(noRelay{}, true)
		if err := h(ctx, &m); err != nil {
			b.Fatal(err)
		}
		m.Reset(wire.Server, answer)
		scanner.Look(&m)
		for i := len(call.Hooks()) - 1; i >= 0; i-- {
			if err := call.Hooks()[i](ctx, &m); err != nil {
				b.Fatal(err)
			}
		}
	}
	roundTrip([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`+"\n"),
		[]byte(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`+"\n"))
	roundTrip([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`+"\n"),
		[]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"size":{"type":"integer"},"workspace":{"type":"string"}}}}]}}`+"\n"))
	frame := []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"size":200}}}` + "\n")
	answer := []byte(`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + strings.Repeat("a plain line of ordinary words, ", 6) + `"}]}}` + "\n")
	b.ReportAllocs()
	for b.Loop() {
		roundTrip(frame, answer)
	}
}
