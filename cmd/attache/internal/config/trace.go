package config

import "github.com/attache-mcp/attache/cmd/attache/internal/setting"

// TraceSettings configure trace context. The OTEL_ variables configure where spans and metrics
// go; see package telemetry.
type TraceSettings struct {
	Propagate bool
}

func traceOption(s *Settings) setting.Option {
	return setting.Option{Key: "trace.propagate", Value: setting.Bool(&s.Trace.Propagate),
		Help: "make each call a child span of its trace in the request to the server; the OTEL_ variables configure the export of spans"}
}
