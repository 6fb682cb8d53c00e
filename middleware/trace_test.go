package middleware_test

import (
	"testing"

	"github.com/attache-mcp/attache/middleware"
)

func TestTrace(t *testing.T) {
	var c middleware.Call
	if got := c.Trace(); got != (middleware.Trace{}) {
		t.Errorf("a call without a trace has the trace %+v", got)
	}
	want := middleware.Trace{TraceID: "0af7651916cd43dd8448eb211c80319c", SpanID: "b7ad6b7169203331"}
	c.SetValue(middleware.TraceKey{}, want)
	if got := c.Trace(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
