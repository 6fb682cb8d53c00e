package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A program adds its own layer, which refuses one tool, marks the results of all other tools,
// and passes everything else on unchanged. The server runs in memory.
func Example_layer() {
	client := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"format_disk"}}
`)
	err := proxy.Run(context.Background(), proxy.Options{
		ClientIn:  client,
		ClientOut: os.Stdout,
		Start:     func(context.Context) (proxy.Upstream, error) { return mempipe.Serve(serve), nil },
		Layers:    []middleware.Layer{{Name: "careful", Wrap: careful}},
	})
	if err != nil {
		fmt.Println(err)
	}

	// Unordered output:
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"format_disk is not for agents; ask the user to do it"}],"isError":true,"resultType":"complete"}}
	// {"jsonrpc":"2.0","id":1,"result":{"content":[],"_meta":{"example.com/careful":true}}}
}

// careful is a middleware: it returns a handler that calls next.
func careful(next middleware.Handler) middleware.Handler {
	return func(ctx context.Context, m *wire.Message) error {
		if m.From != wire.Client || !m.MethodIs("tools/call") {
			return next(ctx, m)
		}
		call := middleware.CallFrom(ctx)
		if m.Name().Equals("format_disk") {
			return call.Answer(ctx, wire.ToolErrorReply(m.ID(), "format_disk is not for agents; ask the user to do it", true))
		}
		call.OnReply(func(_ context.Context, reply *wire.Message) error {
			if reply.Kind() != wire.Result {
				return nil
			}
			return reply.Set([]byte("true"), "result", "_meta", "example.com/careful")
		})
		return next(ctx, m)
	}
}

// serve answers every request with an empty result, until its input ends.
func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		m := wire.Parse(wire.Client, lines.Bytes())
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", m.ID())
	}
	return lines.Err()
}
