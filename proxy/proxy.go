// Package proxy relays one MCP session over stdio between a client and a server.
//
// [Run] does all of it. [Options] have the two ends of the client, a function that
// starts the server when the first frame is on its way to it, and the layers that look
// at the messages. The server is an [Upstream]: package child makes one of a process,
// package mempipe one of a server in this process. The packages below middleware have
// layers; compile them once, and connect them for each client. The example shows a
// whole program.
//
// Each direction has one goroutine that reads a line, looks at it once, runs the layers, and
// writes; or a [wire.Pusher] brings the lines, one at a time. There is no goroutine for a request
// and no queue between the directions: a peer that does not read slows the peer that writes to it,
// and memory stays bounded. What no layer edits leaves as the bytes it came in.
//
// A table has the calls in flight, from the arrival of a request until its one reply
// has left. So a layer can take a reply ([middleware.Call.OnReply]), and every request
// is answered when the server dies.
//
// A server that ends under its client is started again where [Options.Restart] says so:
// see docs/restart.md. The calls it was running are not repeated.
//
// The package does not know sessions, identities or policies: layers do. It handles no
// signals and does not set file descriptors to non-blocking: the program does.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/attache-mcp/attache/proxy/internal/asks"
	"github.com/attache-mcp/attache/proxy/internal/flow"
	"github.com/attache-mcp/attache/proxy/internal/inflight"
	"github.com/attache-mcp/attache/proxy/internal/revive"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	defaultInFlight = 100_000
	// minInFlight is the least limit in bytes of long ids, of answers that wait for the server's array, and
	// of lines that may be repeated, however little a line may hold.
	minInFlight = 1 << 20
)

// RandomIDPrefix returns an [Options.IDPrefix] of the kind that a relay without one has.
func RandomIDPrefix() string { return asks.RandomPrefix() }

// Run relays one session and returns when it is over: the client closed its end, the upstream
// ended, or ctx was done. In each case the upstream is gone, and its messages have reached the
// client if the client still reads.
//
// The error is ErrStart, a failure to read from or write to the client, or the error of a layer;
// the end of the upstream is no error, and neither is the end of ctx. If a required option is
// missing, Run returns an error immediately. A goroutine may stay in a read of ClientIn until the
// caller closes it; what it reads has no effect. One may stay in a write to ClientOut if the
// client does not read.
func Run(ctx context.Context, o Options) error {
	if o.ClientIn == nil && o.ClientLines == nil || o.ClientOut == nil || o.Start == nil { // a goroutine would panic
		return errors.New("a required option is missing: set ClientIn, ClientOut and Start of proxy.Options")
	}
	s := newSession(ctx, o)
	if o.ClientLines != nil {
		o.ClientLines.Push(clientLines{s})
	} else {
		go func() { s.endClient(s.readClient(nil, o.ClientIn)) }()
	}
	if o.ClientGone != nil {
		go s.watchClient()
	}
	s.supervise()
	return s.finish()
}

func newSession(ctx context.Context, o Options) *session {
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	if o.Hold <= 0 {
		o.Hold = wire.DefaultHold
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &session{
		o: o, log: o.Log,
		toClient: wire.NewWriter(o.ClientOut),
		asks:     asks.New(o.IDPrefix),
		backlog:  flow.Backlog{Limit: int64(o.Hold)},
		started:  make(chan *revive.Link, 1),
		ending:   make(chan struct{}),
	}
	s.calls = inflight.New(o.InFlight, max(o.Hold, minInFlight), s.newCall)
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.going, s.leave = context.WithCancel(s.ctx)
	s.deferredCtx, s.endDeferred = context.WithCancel(s.ctx)
	s.noise.Log = o.Log
	if o.Restart != nil {
		s.supervisor = newSupervisor(s, *o.Restart)
	}
	s.c.ctx.Context, s.v.ctx.Context = s.ctx, s.ctx
	// Frames that are not requests have a call too, so that no layer has to check for nil.
	s.c.none.init(s)
	s.v.none.init(s)
	cmp.Or(o.Control, new(Control)).attach(s, Rules{o.Layers, o.DryRun})
	return s
}
