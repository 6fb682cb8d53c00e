package config

import (
	"github.com/attache-mcp/attache/middleware/audit"
)

// AuditSettings say what is recorded of calls, and where.
type AuditSettings struct {
	File      string // absolute; empty: nothing is recorded
	Arguments string // "digest", "redacted" or "full"
	Required  bool   // a call that cannot be recorded is refused
	MaxSize   int64  // bytes of a file before the next one is begun
}

func auditOptions(s *Settings) []option {
	o := &s.Audit
	return []option{
		{Key: "audit.file", Help: "record every call and decision in this file; see \"attache audit\"", value: file{&o.File}},
		{Key: "audit.arguments", Help: "how much of the arguments is recorded: a digest, all but what looks secret, or all but the secrets known",
			value: choice{&o.Arguments, []string{string(audit.Digest), string(audit.Redacted), string(audit.Full)}}},
		{Key: "audit.required", Help: "refuse calls that cannot be recorded", value: boolean{&o.Required}},
		{Key: "audit.max_size", Help: "how large the file may become before it is renamed and the next one begun", value: size{&o.MaxSize, 4 << 10, 1 << 40}},
	}
}
