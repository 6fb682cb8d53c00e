package proxy_test

import (
	"context"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/wire"
)

// FuzzDryRun sends two streams through a relay with layers that edit, answer and
// drop whatever they can, and rules that enforce, all of it a dry run: what comes
// out is what comes out of a relay without layers and rules.
func FuzzDryRun(f *testing.F) {
	for _, s := range fuzzSeeds(f) {
		f.Add(s.client, s.server, uint16(4000))
		f.Add(s.client, s.server, uint16(40))
	}
	f.Fuzz(func(t *testing.T, client, server []byte, hold uint16) {
		plain := proxy.Options{Hold: 16 + int(hold), IDPrefix: "own-"}
		dry := plain
		dry.DryRun = true
		shared := dryrun.Compile(dryrun.Options{})
		dry.Layers = []middleware.Layer{shared.Connect(dryrun.ConnOptions{Layers: []middleware.Layer{wild(), enforces}}).Layer()}
		relay := func(o proxy.Options) streams {
			return relayStreams(t, o, &pieces{rest: client, max: 1 << 20}, &pieces{rest: server, max: 1 << 20})
		}
		want, got := relay(plain), relay(dry)
		same(t, "the server's input", want.server, got.server)
		same(t, "the client's output", want.client, got.client)
		same(t, "attache's own answers", want.own, got.own)
	})
}

// wild is a layer that does to each frame what its length says.
func wild() middleware.Layer {
	return layer("wild", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		call.MustHold()
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			if len(reply.Frame())%2 == 0 {
				*reply = *wire.ErrorReply(nil, wire.CodeInternalError, "replaced")
				return nil
			}
			return reply.Set([]byte("true"), "result", "wild")
		})
		switch len(m.Frame()) % 4 {
		case 0:
			return nil
		case 1:
			return call.Answer(ctx, wire.ErrorReply(nil, wire.CodeInternalError, "answered"))
		case 2:
			_ = m.Set([]byte("true"), "params", "wild") // not every frame can be edited
		}
		return next(ctx, m)
	})
}
