package proxy_test

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/wire"
)

// FuzzDryRun sends two streams through a dry run with rules that enforce and a layer that edits,
// answers and drops messages. The output is that of a relay without layers.
func FuzzDryRun(f *testing.F) {
	for _, s := range fuzzSeeds(f) {
		f.Add(s.client, s.server, uint16(4000))
		f.Add(s.client, s.server, uint16(40))
	}
	f.Fuzz(func(t *testing.T, client, server []byte, hold uint16) {
		plain := proxy.Options{Hold: 16 + int(hold), IDPrefix: "own-"}
		dry := plain
		dry.DryRun = true
		dry.Layers = []middleware.Layer{dryrun.New(dryrun.Options{Layers: []middleware.Layer{modifyingLayer(), enforceLayer}})}
		relay := func(o proxy.Options) relayOutput {
			return relayStreams(t, o, &chunkReader{rest: client, max: 1 << 20}, &chunkReader{rest: server, max: 1 << 20})
		}
		want, got := relay(plain), relay(dry)
		checkEqual(t, "the server's input", want.server, got.server)
		checkEqual(t, "the client's output", want.client, got.client)
		checkEqual(t, "attache's own answers", want.own, got.own)
	})
}

// modifyingLayer drops, answers, edits or passes on each message, depending on its length.
func modifyingLayer() middleware.Layer {
	return layer("modify", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		call.MustHold()
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			if len(reply.Frame())%2 == 0 {
				*reply = *wire.ErrorReply(nil, wire.CodeInternalError, "replaced")
				return nil
			}
			return reply.Set([]byte("true"), "result", "modified")
		})
		switch len(m.Frame()) % 4 {
		case 0:
			return nil
		case 1:
			return call.Answer(ctx, wire.ErrorReply(nil, wire.CodeInternalError, "answered"))
		case 2:
			_ = m.Set([]byte("true"), "params", "modified") // some messages cannot be edited
		}
		return next(ctx, m)
	})
}
