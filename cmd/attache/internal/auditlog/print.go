package auditlog

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

// A record holds the members of an audit record that are printed.
type record struct {
	Time     time.Time
	Kind     string
	Session  string
	User     string
	Tenant   string
	Server   string
	Method   string
	Tool     string
	Prompt   string
	Resource string
	SentAs   string `json:"sent_as"`
	Decision string
	DryRun   bool `json:"dry_run"`
	Result   string
	Code     int
	Request  int `json:"request_bytes"`
	Reply    int `json:"reply_bytes"`
	MS       float64
	Briefing bool
	Why      string
	Records  int
	Trace    string `json:"trace_id"`
	Agent    string
	Child    string `json:"agent_session"`
	Exit     string
	Rules    []struct{ Layer, Rule, Act, Why string }
	Edits    []struct{ Layer, Rule, Path, Source string }
}

// A Printer prints records for people. It replaces control characters in a record, so that they
// cannot move the cursor.
type Printer struct {
	term.Printer
	Zone *time.Location // time zone of the printed times
}

// NewPrinter returns a printer that writes to out.
func NewPrinter(out io.Writer, colours bool, zone *time.Location) *Printer {
	return &Printer{term.Printer{Out: bufio.NewWriter(out), Colours: colours}, zone}
}

// Record prints one line of the file.
func (p *Printer) Record(line []byte) error {
	var r record
	if json.Unmarshal(line, &r) != nil || r.Kind == "" {
		p.line(term.Bad, "a line that is not a record: "+strconv.Itoa(len(line))+` bytes; see "attache audit verify"`)
		return p.Out.Flush()
	}
	switch r.Kind {
	case "call", "intent", "aside":
		p.call(&r)
		p.details(&r)
	default:
		if r.Records > 0 {
			r.Why = cli.Plural(r.Records, "record") + " missing: " + r.Why
		}
		if r.Agent != "" {
			r.Server = "" // which the process wraps; the agent does not belong to it
		}
		text := p.moment(r.Time)
		for _, part := range []string{r.Kind, r.Server, r.Method, r.Agent, r.Child, r.Exit, r.Why} {
			if part != "" {
				text += "  " + part
			}
		}
		p.line(term.Quiet, text)
	}
	return p.Out.Flush()
}

func (p *Printer) call(r *record) {
	var parts []string
	add := func(s term.Style, text string) {
		if text != "" {
			parts = append(parts, p.In(s, cli.Printable(text)))
		}
	}
	add(term.Quiet, p.moment(r.Time))
	add(term.Plain, r.principal())
	add(term.Heading, r.target())
	add(r.style(), r.Decision)
	switch r.Kind {
	case "intent":
		add(term.Plain, "about to be sent")
	case "aside":
		add(r.style(), r.Why)
	default:
		add(r.style(), r.result())
		add(term.Plain, strconv.FormatFloat(r.MS, 'f', 1, 64)+" ms")
	}
	add(term.Quiet, r.sizes())
	if r.Briefing {
		add(term.Good, "briefed")
	}
	if r.DryRun {
		add(term.Notice, "dry run")
	}
	if r.Trace != "" {
		add(term.Quiet, "trace "+r.Trace)
	}
	p.Line(term.Plain, strings.Join(parts, "  "))
}

func (p *Printer) details(r *record) {
	for _, n := range r.Rules {
		text := "    " + n.Act + " by " + cmp.Or(n.Rule, n.Layer)
		if n.Why != "" {
			text += ": " + n.Why
		}
		p.line(term.OfAct(n.Act), text)
	}
	for _, e := range r.Edits {
		text := "    " + e.Path + " edited by " + cmp.Or(e.Rule, e.Layer)
		if e.Source != "" {
			text += ": " + e.Source
		}
		p.line(term.Quiet, text)
	}
}

func (p *Printer) line(style term.Style, text string) {
	p.Line(style, cli.Printable(text))
}

func (p *Printer) moment(t time.Time) string {
	return t.In(p.Zone).Format("2006-01-02 15:04:05.000")
}

func (r *record) style() term.Style {
	switch {
	case r.Decision == "refused", r.Kind == "aside":
		return term.Bad
	case r.Result == "ok":
		return term.Good
	case r.Kind == "intent":
		return term.Plain
	}
	return term.Notice
}

func (r *record) principal() string {
	switch {
	case r.User == "" && r.Tenant == "":
		return "nobody known"
	case r.Tenant == "":
		return r.User
	}
	return r.User + " (" + r.Tenant + ")"
}

// target returns the server, and the tool, prompt, resource or method that was called.
func (r *record) target() string {
	text := cmp.Or(r.Tool, r.Prompt, r.Resource, r.Method)
	if r.Server != "" {
		text = r.Server + ": " + text
	}
	if r.SentAs != "" {
		text += " (sent as " + r.SentAs + ")"
	}
	return text
}

func (r *record) result() string {
	if r.Code != 0 {
		return r.Result + " " + strconv.Itoa(r.Code)
	}
	return r.Result
}

// sizes returns the sizes of the call and its reply, "" if they are not known.
func (r *record) sizes() string {
	if r.Request == 0 {
		return ""
	}
	text := strconv.Itoa(r.Request) + " B in"
	if r.Reply > 0 {
		text += ", " + strconv.Itoa(r.Reply) + " B out"
	}
	return text
}
