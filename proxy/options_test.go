package proxy_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
)

// A missing option is an error of Run. It must not panic on a goroutine of the relay, which would
// end the program, nor be taken for a panic of a layer.
func TestMissingOptions(t *testing.T) {
	const frame = `{"jsonrpc":"2.0","id":1,"method":"x"}` + "\n"
	whole := func() proxy.Options {
		return proxy.Options{
			ClientIn: strings.NewReader(frame), ClientOut: io.Discard,
			Start: func(context.Context) (proxy.Upstream, error) { return mempipe.Serve(serve), nil },
		}
	}
	for name, remove := range map[string]func(*proxy.Options){
		"ClientIn":  func(o *proxy.Options) { o.ClientIn = nil },
		"ClientOut": func(o *proxy.Options) { o.ClientOut = nil },
		"Start":     func(o *proxy.Options) { o.Start = nil },
	} {
		o := whole()
		remove(&o)
		if err := proxy.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a required option is missing") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
