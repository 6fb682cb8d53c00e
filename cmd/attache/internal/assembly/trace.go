package assembly

import (
	"log/slog"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/trace"
)

// traceLayer returns the outermost layer. It is there without configuration too,
// since a client that traces has its trace id in log and audit.
func (k *State) traceLayer(s *config.Settings, log *slog.Logger) middleware.Layer {
	return trace.New(trace.Options{
		Propagate: s.Trace.Propagate,
		DryRun:    s.DryRun,
		Telemetry: k.Telemetry,
		Replayed:  k.replayed,
		Log:       log,
	}).Layer()
}
