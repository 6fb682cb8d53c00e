package proxy_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// Replaced rules apply to later frames. A call in flight keeps the hooks that it has.
func TestControlReplace(t *testing.T) {
	var control proxy.Control
	control.Notify(wire.NewNotification(wire.Server, "notifications/x", nil)) // no session uses control yet
	s := proxytest.Setup{Options: proxy.Options{Control: &control}}.Start(t)
	edits := func(arg string) proxy.Rules {
		return proxy.Rules{Layers: []middleware.Layer{editLayer(s, arg)}}
	}
	const ambiguous = `{"jsonrpc":"2.0","method":"x","Method":"y"}`

	s.Client.Send(ambiguous)
	s.Server.Expect(ambiguous)
	control.Replace(edits("one"))
	s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
	s.Server.Expect(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"one":true}}}`)

	two := edits("two")
	two.Layers = append(two.Layers, middleware.Layer{
		Name: "needs", Enforces: true, ArgumentNames: [][]string{{"path"}},
	})
	control.Replace(two)
	s.Client.Send(ambiguous)
	s.Client.Expect(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}`)
	s.Client.Send(`{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"t","arguments":{"path":1,"Path":2}}}`)
	s.Client.Expect(`{"jsonrpc":"2.0","id":9,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}`)
	s.Client.Send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
	s.Server.Expect(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"two":true}}}`)
	s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	s.Client.Expect(`{"jsonrpc":"2.0","id":1,"result":{"one":true}}`)
	s.Server.Send(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	s.Client.Expect(`{"jsonrpc":"2.0","id":2,"result":{"two":true}}`)

	control.Replace(proxy.Rules{})
	s.Client.Send(ambiguous)
	s.Server.Expect(ambiguous)
	control.Notify(wire.NewNotification(wire.Server, "notifications/tools/list_changed", nil))
	s.Client.Expect(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
}

// Frames that wait while the rules are replaced are scanned again and pass through the new layers,
// which name other arguments.
func TestControlReplaceScansWaitingFrames(t *testing.T) {
	const (
		first  = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold"}}`
		second = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{"Organization":"evil","organization":"acme"}}}`
	)
	pins := middleware.Layer{Name: "pins", Enforces: true, ArgumentNames: [][]string{{"organization"}}}
	for name, o := range map[string]proxy.Options{
		"behind a suspended frame": {},
		"for calls in flight":      {InFlight: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var control proxy.Control
				o.Control = &control
				if o.InFlight == 0 {
					o.Layers = []middleware.Layer{holdLayer(new(proxytest.Session), "1s")}
				}
				s := proxytest.Setup{Options: o}.Start(t)
				s.Client.Send(first)
				s.Client.Send(second)
				synctest.Wait()
				control.Replace(proxy.Rules{Layers: []middleware.Layer{pins}})
				s.Server.Expect(first)
				s.Server.Send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
				got := []string{string(s.Client.Next()), string(s.Client.Next())} // in either order
				slices.Sort(got)
				want := []string{
					`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n",
					`{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"refused: a name differs from one that matters only in letter case, blanks or invisible characters","data":{"source":"attache"}}}` + "\n",
				}
				if !slices.Equal(got, want) {
					t.Errorf("the client got %q", got)
				}
				s.Client.Close()
				if n := s.Server.Pending(); n > 0 {
					t.Errorf("%d more bytes reached the server", n)
				}
			})
		})
	}
}

// Rules that are replaced after the options were made and before Run apply from the first frame.
func TestControlReplaceBeforeRun(t *testing.T) {
	var control proxy.Control
	s := new(proxytest.Session)
	rules := func(arg string) []middleware.Layer { return []middleware.Layer{editLayer(s, arg)} }
	setup := proxytest.Setup{Options: proxy.Options{Control: &control, Layers: rules("old")}}
	control.Replace(proxy.Rules{Layers: rules("new")})
	s = setup.Start(t)
	s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
	s.Server.Expect(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"new":true}}}`)
}

// Replaced rules are not kept in memory.
func TestControlReplaceFrees(t *testing.T) {
	var control proxy.Control
	freed := make(chan struct{})
	func() {
		layer := editLayer(new(proxytest.Session), "old")
		memory := new([1 << 10]byte)
		runtime.AddCleanup(memory, func(int) { close(freed) }, 0)
		wrap := layer.Wrap
		layer.Wrap = func(next middleware.Handler) middleware.Handler {
			runtime.KeepAlive(memory)
			return wrap(next)
		}
		control.Replace(proxy.Rules{Layers: []middleware.Layer{layer}})
	}()
	s := proxytest.Setup{Options: proxy.Options{Control: &control}}.Start(t)
	pass := func() {
		s.Client.Send(`{"jsonrpc":"2.0","method":"x"}`)
		s.Server.Expect(`{"jsonrpc":"2.0","method":"x"}`)
	}
	pass() // so that the session has begun with the first rules
	control.Replace(proxy.Rules{})
	pass()
	for {
		select {
		case <-freed:
			return
		default:
			runtime.GC() // if the rules are never freed, until the time-out of the test
		}
	}
}

// Replace does not outlive a session whose client has stopped reading.
func TestControlReplaceEnds(t *testing.T) {
	t.Parallel()
	var control proxy.Control
	in, out, server := mempipe.New(0), mempipe.New(1), mempipe.NewServer(0)
	defer in.CloseRead()
	defer out.CloseRead()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = proxy.Run(ctx, proxy.Options{
			ClientIn: in, ClientOut: out, Control: &control,
			Start: func(context.Context) (proxy.Upstream, error) { return server, nil },
		})
	}()
	_, _ = in.Write([]byte(`{"jsonrpc":"2.0","method":"x"}` + "\n"))
	_, _ = server.Out.Write([]byte(`{"jsonrpc":"2.0","method":"y"}` + "\n"))
	out.AwaitStuck()
	replaced := make(chan struct{})
	go func() { control.Replace(proxy.Rules{}); close(replaced) }()
	server.Exit(nil)
	cancel()
	<-ended
	select {
	case <-replaced:
	case <-time.After(time.Minute): // Replace would wait for ever
		t.Error("Replace still waits for the client")
	}
}
