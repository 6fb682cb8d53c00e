package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Each line is watched at the points that it passes, layers that do nothing but Wrap get the messages of both
// peers, and no message finds what a layer has attached to the call of another.
func TestPoints(t *testing.T) {
	const (
		hello, bye        = `{"jsonrpc":"2.0","method":"hello"}` + "\n", `{"jsonrpc":"2.0","method":"bye"}` + "\n"
		request, answered = `{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n", `{"jsonrpc":"2.0","id":2,"method":"answered"}` + "\n"
		news, more, ask   = `{"jsonrpc":"2.0","method":"news"}` + "\n", `{"jsonrpc":"2.0","method":"more"}` + "\n", `{"jsonrpc":"2.0","id":1,"method":"ask"}` + "\n"
		reply, own        = `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", `{"jsonrpc":"2.0","id":2,"result":{}}` + "\n"
	)
	var mu sync.Mutex
	watched := map[proxy.Point][]string{}
	var seen []string
	points := layer("points", func(ctx context.Context, call *middleware.Call, m *wire.Message, next middleware.Handler) error {
		mu.Lock()
		seen = append(seen, fmt.Sprint(m.Method(), " ", call.Value("key")))
		mu.Unlock()
		call.SetValue("key", "value")
		if m.MethodIs("answered") {
			return call.Answer(ctx, wire.ResultReply(m.ID(), []byte("{}")))
		}
		return next(ctx, m)
	})
	err := proxy.Run(t.Context(), proxy.Options{
		ClientIn:  strings.NewReader(hello + bye + request + answered),
		ClientOut: io.Discard,
		Layers:    []middleware.Layer{points},
		Start: func(context.Context) (proxy.Upstream, error) {
			return mempipe.Serve(func(in io.Reader, out io.Writer) error {
				for lines := bufio.NewScanner(in); lines.Scan(); {
					if lines.Text()+"\n" == request {
						fmt.Fprint(out, news, more, ask, reply)
					}
				}
				return nil
			}), nil
		},
		Watch: func(at proxy.Point, line []byte) {
			mu.Lock()
			defer mu.Unlock()
			watched[at] = append(watched[at], string(line))
		},
	})
	testkit.Check(t, err)
	for at, want := range map[proxy.Point][]string{
		proxy.ClientIn: {hello, bye, request, answered}, proxy.ServerIn: {hello, bye, request},
		proxy.ServerOut: {news, more, ask, reply}, proxy.ClientOut: {own, news, more, ask, reply},
	} {
		got := watched[at]
		if at == proxy.ClientOut { // attache's answer may come at any time
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
	slices.Sort(seen)
	if want := []string{"answered <nil>", "ask <nil>", "bye <nil>", "hello <nil>", "more <nil>", "news <nil>", "x <nil>"}; !slices.Equal(seen, want) {
		t.Errorf("the layer saw %q", seen)
	}
}
