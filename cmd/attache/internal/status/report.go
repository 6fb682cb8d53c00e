package status

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// A Report describes what one attache has done since it started.
type Report struct {
	PID       int       `json:"pid"`
	Namespace string    `json:"pid_namespace,omitempty"` // of the PID; "" if the system has none
	Started   time.Time `json:"started"`
	Server    string    `json:"server"`
	Session   string    `json:"session,omitempty"`
	Workspace string    `json:"workspace,omitempty"`
	Front     *Front    `json:"front,omitempty"`   // of attache serve
	Restart   bool      `json:"restart,omitempty"` // attache restart can restart its server
	Calls     int       `json:"calls"`
	Filled    int       `json:"filled"`
	Pinned    int       `json:"pinned"`
	Rewritten int       `json:"rewritten"`
	Refused   int       `json:"refused"`
	Briefed   int       `json:"briefed"`
	Edits     []Event   `json:"edits,omitempty"`
	Warnings  []Event   `json:"warnings,omitempty"`
}

// Restarts reports whether attache restart can restart the server of that name. A front may have
// several.
func (r Report) Restarts(name string) bool {
	return r.Restart && (r.Server == name || slices.Contains(r.restartable(), name))
}

// Restartable returns the names of the servers that attache restart restarts.
func (r Report) Restartable() string { return strings.Join(r.restartable(), ", ") }

func (r Report) restartable() []string {
	if r.Front == nil {
		return []string{r.Server}
	}
	return slices.DeleteFunc(strings.Split(r.Server, ", "), func(name string) bool { return slices.Contains(r.Front.Fixed, name) })
}

// A Front describes the clients of an attache that serves many clients. Their calls are not counted.
type Front struct {
	URLs     []string `json:"urls"`
	Sessions int      `json:"sessions"`
	Fixed    []string `json:"fixed,omitempty"` // the servers that attache restart cannot restart
}

// An Event is one edit, refusal or warning.
type Event struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

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

// pidNamespace returns the PID namespace of this process, or "" if the system has none.
func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
