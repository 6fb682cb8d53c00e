package config

import (
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/audit"
)

// AuditSettings configure what is recorded of calls, and where.
type AuditSettings struct {
	File      string // absolute; empty: nothing is recorded
	Arguments string // "digest", "redacted" or "full"
	Required  bool   // refuse calls that cannot be recorded
	MaxSize   int64  // bytes in a file before the next one is started
}

func auditOptions(s *Settings) []setting.Option {
	o := &s.Audit
	return []setting.Option{
		{Key: "audit.file", Help: "record every call and decision in this file; see \"attache audit\"", Value: setting.Path(&o.File)},
		{Key: "audit.arguments", Help: "how much of the arguments is recorded: a digest, all except values that look secret, or all except known secrets",
			Value: setting.Choice(&o.Arguments, string(audit.Digest), string(audit.Redacted), string(audit.Full))},
		{Key: "audit.required", Help: "refuse calls that cannot be recorded", Value: setting.Bool(&o.Required)},
		{Key: "audit.max_size", Help: "how large the file may become before it is renamed and a new one is started", Value: setting.Size(&o.MaxSize, 4<<10, 1<<40)},
	}
}
