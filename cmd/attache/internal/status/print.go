package status

import (
	"fmt"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// Write writes the report for people. now is the current time.
func (r Report) Write(b *strings.Builder, now time.Time) {
	line := func(format string, args ...any) {
		fmt.Fprintln(b, cli.Printable(fmt.Sprintf(format, args...)))
	}
	line("  %s: process %d, for %s", r.Server, r.PID, now.Sub(r.Started).Round(time.Second))
	if r.Session != "" {
		line("    session      %s", r.Session)
	}
	if r.Workspace != "" {
		line("    workspace    %s", r.Workspace)
	}
	if f := r.Front; f != nil {
		line("    serves       %s", strings.Join(f.URLs, ", "))
		line("    sessions     %d", f.Sessions)
	} else {
		line("    calls        %d: filled %d, pinned %d, rewritten %d, refused %d, briefed %d", r.Calls, r.Filled, r.Pinned, r.Rewritten, r.Refused, r.Briefed)
	}
	for _, e := range r.Edits {
		line("    %s     %s", e.Time.Local().Format(time.TimeOnly), e.Text)
	}
	for _, e := range r.Warnings {
		line("    %s     warning: %s", e.Time.Local().Format(time.TimeOnly), e.Text)
	}
}
