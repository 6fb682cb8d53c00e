// Package status shows a user what the running attaches do. While its server runs, each attache writes a
// small file in the user's runtime directory, with its server and session, how often it filled, pinned,
// refused and briefed, and its last edits and warnings. There is no socket, and the file contains no values
// of calls.
package status

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/proxy/wire"
)

const (
	// maxRecent is the number of the last edits, and of the last warnings, in a report.
	maxRecent = 10
	// maxText is the maximum length of their text, in bytes.
	maxText = 300
)

// A Recorder collects the report of one attache. Its methods may be called concurrently.
type Recorder struct {
	describe func(*Report) // adds facts of the session to a report
	now      func() time.Time

	mu      sync.Mutex
	report  Report // without its edits
	edits   [maxRecent]edit
	edited  int        // the number of all edits; the last ones are in edits
	publish *publisher // nil until the server runs
}

// NewRecorder returns a Recorder for the process pid in front of server. describe, if not nil, adds facts
// of the session to a report. It is not called on the path of a message.
func NewRecorder(pid int, server string, describe func(*Report)) *Recorder {
	return &Recorder{describe: describe, now: time.Now, report: Report{PID: pid, Namespace: pidNamespace(), Started: time.Now(), Server: server}}
}

// Layer returns the layer that counts. It is outside the layers that decide, observes tool calls and the
// requests whose replies can carry the briefing, and changes nothing.
func (r *Recorder) Layer() middleware.Layer {
	return middleware.Layer{Name: "status", Wrap: func(next middleware.Handler) middleware.Handler {
		listeners := glob.Names[func(*middleware.Call, middleware.Note)]{All: r.listener(""), Find: r.listener} // one for each tool, not for each call
		return func(ctx context.Context, m *wire.Message) error {
			if m.From == wire.Client {
				switch {
				case m.MethodIs("tools/call"):
					r.call()
					middleware.CallFrom(ctx).Listen(false, listeners.Of(m.Name().View()))
				case slices.ContainsFunc(briefable, m.MethodIs):
					middleware.CallFrom(ctx).Listen(false, listeners.All)
				}
			}
			return next(ctx, m)
		}
	}}
}

// briefable are the methods other than tools/call whose replies can carry the briefing.
var briefable = []string{"initialize", "server/discover", "tasks/result", "tasks/get"}

// Publish starts to write the report to a file in dir whenever it changes. It creates dir with the first
// report. The returned function stops this and removes the file.
func (r *Recorder) Publish(dir string) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publish = newPublisher(dir, r.report.PID, r.snapshot)
	r.publish.changed()
	return r.publish.stop
}

// Changed schedules a write of the report, because facts that describe adds have changed.
func (r *Recorder) Changed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.publish.changed()
}

func (r *Recorder) call() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Calls++
	r.publish.changed()
}

// listener returns the function that records notes on calls of tool, or of no tool if it is "".
func (r *Recorder) listener(tool string) func(*middleware.Call, middleware.Note) {
	tool = strings.Clone(tool) // it may point into a frame
	return func(_ *middleware.Call, n middleware.Note) { r.note(tool, n) }
}

// note counts what a layer did to a call of tool. It runs on the path of a message, so it only stores the
// parts of the text and does not format it.
func (r *Recorder) note(tool string, n middleware.Note) {
	if n.DryRun || n.Act != middleware.Edited && n.Act != middleware.Refused {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case n.Act == middleware.Refused:
		r.report.Refused++
		r.keep(edit{did: refused, tool: tool, by: n.Layer, why: n.Why})
	case n.Layer == "briefing" && (n.Rule != "policy" || n.After == nil):
		// The edit made room for the briefing, and is not the briefing itself.
	case n.Layer == "briefing":
		r.report.Briefed++
		r.keep(edit{did: briefed, tool: tool})
	case n.Layer == "capture":
		r.keep(edit{did: "cut out", argument: last(n.Path), tool: tool}) // a credential
	case n.Layer == "rewrite":
		r.report.Rewritten++
		r.keep(edit{did: "set", argument: last(n.Path), tool: tool, by: n.Source})
	case n.Pinned:
		r.report.Pinned++
		r.keep(edit{did: "pinned", argument: last(n.Path), tool: tool, by: n.Source})
	default:
		r.report.Filled++
		r.keep(edit{did: "filled", argument: last(n.Path), tool: tool, by: n.Source})
	}
	r.publish.changed()
}

// An edit holds the parts of the text of an event about a call.
type edit struct {
	time     time.Time
	did      string
	argument string
	tool     string // "" for a request that is no tool call
	by       string // the source of a value, or the layer that refused
	why      string
}

// Values of edit.did that have a text of their own.
const (
	refused = "refused"
	briefed = "briefed the model"
)

// keep stores an edit and drops the oldest.
func (r *Recorder) keep(e edit) {
	e.time = r.now()
	r.edits[r.edited%maxRecent] = e
	r.edited++
}

// event returns the edit with its text, such as "filled path of git_status with session.workspace.path
// from --workspace".
func (e edit) event() Event {
	text := e.did
	add := func(lead, part string) {
		if part != "" {
			text += lead + part
		}
	}
	switch e.did {
	case refused:
		add(" ", e.tool)
		add(" by ", e.by)
		add(": ", e.why)
	case briefed:
		add(" by ", e.tool)
	default:
		add(" ", e.argument)
		add(" of ", e.tool)
		add(" with ", e.by)
	}
	return Event{e.time, cli.Cut(text, maxText)}
}

func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

func (r *Recorder) snapshot() Report {
	r.mu.Lock()
	report := r.report
	for i := max(r.edited-maxRecent, 0); i < r.edited; i++ {
		report.Edits = append(report.Edits, r.edits[i%maxRecent].event())
	}
	report.Warnings = slices.Clone(report.Warnings)
	r.mu.Unlock()
	if r.describe != nil {
		r.describe(&report)
	}
	return report
}

// Log adds a record to the report if it is a warning or an error. It takes the place of an earlier one
// with the same text, so that many of one kind do not hide the others.
func (r *Recorder) Log(record slog.Record) {
	if record.Level < slog.LevelWarn {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	text := cli.Cut(record.Message, maxText)
	all := slices.DeleteFunc(r.report.Warnings, func(e Event) bool { return e.Text == text })
	all = append(all, Event{r.now(), text})
	r.report.Warnings = all[max(len(all)-maxRecent, 0):]
	r.publish.changed()
}
