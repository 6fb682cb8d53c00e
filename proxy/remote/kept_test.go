package remote

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/internal/testkit"
)

// waitingTransport reads requests, and answers none.
type waitingTransport chan struct{}

func (t waitingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	httptrace.ContextClientTrace(r.Context()).WroteRequest(httptrace.WroteRequestInfo{})
	t <- struct{}{}
	ctx := r.Context()
	r.Body, r.GetBody = nil, nil // they have the line
	<-ctx.Done()
	return nil, ctx.Err()
}

// A client may send many requests with long texts that become headers, and the server may answer none of
// them.
func TestLongTextsAreNotKept(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	const version = `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`
	for _, request := range []string{
		`"method":"tools/call","params":{"name":"t","_meta":{` + version + `,"x":"%s"}}`,
		`"method":"tools/call","params":{"name":"%s","_meta":{` + version + `}}`,
		`"method":"resources/read","params":{"uri":"%s","_meta":{` + version + `}}`,
		`"method":"tasks/get","params":{"taskId":"%s","_meta":{` + version + `}}`,
		`"method":"%s","params":{"_meta":{` + version + `}}`,
		`"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"%s"}}`,
	} {
		sent := make(waitingTransport)
		s, err := Start(Options{URL: "http://127.0.0.1/mcp", Transport: sent, Hold: 4 << 20})
		testkit.Check(t, err)
		const n = 30
		line := fmt.Sprintf(request, long) + "}\n"
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range n {
			fmt.Fprintf(s.Stdin(), `{"jsonrpc":"2.0","id":%d,`, i)
			io.WriteString(s.Stdin(), line)
			<-sent
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > n/2<<20 {
			t.Errorf("%.60s…: %d bytes are kept for %d requests in flight", request, kept, n)
		}
		s.cancel()
		s.Stop()
	}
}
