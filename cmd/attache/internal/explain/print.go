package explain

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/status"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/dryrun"
	"github.com/attache-mcp/attache/proxy"
)

// printChain prints the layers of a session in order.
func (e *Explainer) printChain() error {
	session := assembly.ConnOptions{Control: &proxy.Control{}, Status: &status.Recorder{}}
	conn, err := assembly.Single(assembly.Options{Process: e.Process, Audit: true, Teams: &assembly.TeamsOptions{}, Log: e.Log}, e.Settings, session)
	if err != nil {
		return err
	}
	type link struct {
		Layer string `json:"layer"`
		Does  string `json:"does"`
	}
	does := map[string]string{dryrun.Name: "runs the layers behind capture without letting them act"}
	for _, place := range assembly.Order() {
		does[place.Name] = place.Does
	}
	chain := []link{}
	for _, name := range conn.Names() {
		chain = append(chain, link{name, does[name]})
	}
	if e.JSON {
		return term.WriteJSON(e.Stdout, chain)
	}
	fmt.Fprintln(e.Stdout, "client")
	for i, x := range chain {
		fmt.Fprintf(e.Stdout, "  %d  %-10s %s\n", i+1, x.Layer, x.Does)
	}
	_, err = fmt.Fprintln(e.Stdout, "server")
	return err
}

func (e *Explainer) print(calls []callReport) error {
	var text bytes.Buffer
	p := &printer{Printer: term.Printer{Out: bufio.NewWriter(&text), Colours: term.HasColour(e.Getenv, e.Stdout)}}
	for i := range calls {
		if i > 0 {
			p.Line(term.Plain, "")
		}
		p.call(&calls[i], i+1, len(calls))
	}
	_ = p.Out.Flush() // to memory, cannot fail
	_, err := io.WriteString(e.Stdout, term.PrintableLines(text.String()))
	return err
}

type printer struct{ term.Printer }

func (p *printer) call(x *callReport, n, total int) {
	title := strings.TrimSpace(x.Method + " " + x.Tool)
	if total > 1 {
		title = fmt.Sprintf("%d of %d  %s", n, total, title)
	}
	p.Heading(title, verdictOf(x))
	p.Wrapped(term.Quiet, "schema: ", x.Schema)
	for _, e := range x.Servers {
		p.Line(term.Quiet, "servers."+e.Name+" applies to this server ("+e.At+")")
	}
	if x.Hidden {
		hidden := "the model is not shown this tool"
		if x.Outcome == outcomeGoesOn {
			hidden += "; a client may call it nevertheless"
		}
		p.Wrapped(term.Notice, "hidden: ", hidden)
	}
	p.facts(x.Facts)
	if x.Ambiguity != "" {
		p.Line(term.Plain, "")
		p.Wrapped(term.Notice, "ambiguous: ", x.Ambiguity+"; so parsers may read it differently, and no layer sees it. "+ambiguityRule(x))
	}
	for i, part := range x.Layers {
		if x.Ambiguity == "" {
			p.request(i+1, part, x)
		}
	}
	p.outcome(x)
	p.replyEdits(x)
}

func verdictOf(x *callReport) term.Verdict {
	switch {
	case x.Outcome == outcomeRefused:
		return term.Verdict{Style: term.Bad, Text: "refused by " + x.By}
	case x.Outcome == outcomeDropped:
		return term.Verdict{Style: term.Bad, Text: "dropped by " + x.By}
	case string(x.Sent) != string(x.Frame):
		return term.Verdict{Style: term.Good, Text: "goes on, changed"}
	}
	return term.Verdict{Style: term.Good, Text: "goes on, unchanged"}
}

// ambiguityRule returns what happens to ambiguous frames.
func ambiguityRule(x *callReport) string {
	if x.Outcome == outcomeRefused {
		return "With a rule that enforces (access, pin, forbid), or a credential in it, it is refused."
	}
	return "As no rule enforces (access, pin, forbid), it passes as it is; with one it would be refused."
}

func (p *printer) facts(facts []factReport) {
	if len(facts) == 0 {
		return
	}
	width := 0
	for _, f := range facts {
		width = max(width, len(f.Name))
	}
	p.Line(term.Plain, "")
	p.Line(term.Heading, "what is known of the session")
	for _, f := range facts {
		p.Line(term.Plain, fmt.Sprintf("  %-*s  %s", width, f.Name, f.Value)+p.In(term.Quiet, "  "+term.Provenance(f.Source, f.From)))
	}
}

func (p *printer) request(n int, part layerReport, x *callReport) {
	p.Line(term.Plain, "")
	title := fmt.Sprintf("%d  %s", n, part.Name)
	if !part.Reached {
		p.Line(term.Plain, p.In(term.Quiet, title+": not reached"))
		return
	}
	p.Line(term.Heading, title)
	printed := p.notes(part.Notes, "request")
	switch {
	case part.Request != nil:
		p.Frame(part.Request.Before, part.Request.After)
	case !printed && x.By != part.Name:
		p.Line(term.Quiet, "  nothing to do")
	}
}

// notes prints the notes on requests or replies, and reports whether there are any.
func (p *printer) notes(notes []noteReport, on string) bool {
	printed := false
	for _, n := range notes {
		if n.On != on {
			continue
		}
		printed = true
		head := p.In(term.OfAct(n.Act), fmt.Sprintf("%-8s", n.Act))
		if n.Rule != "" {
			head += " " + n.Rule
		}
		p.Line(term.Plain, "  "+head+detail(n))
		if n.Config != "" {
			p.Line(term.Quiet, "           rule: "+n.Config+"  "+filepath.Base(n.At))
		}
		for _, f := range n.Inputs {
			p.Line(term.Quiet, "           "+f.String())
		}
	}
	return printed
}

// detail returns what a rule did: the path, the change, its source, and the reason.
func detail(n noteReport) string {
	text := ""
	if len(n.Path) > 0 {
		text += "  " + strings.Join(n.Path, ".")
	}
	switch {
	case n.Act != string(middleware.Edited):
	case n.After == nil:
		text += " removed"
	case n.Before == nil:
		text += " = " + cli.Cut(string(n.After), shownValue)
	default:
		text += " = " + cli.Cut(string(n.After), shownValue) + " instead of " + cli.Cut(string(n.Before), shownValue)
	}
	if n.Source != "" {
		text += ", from " + n.Source
	}
	switch {
	case n.Why == "":
	case text == "" && n.Rule == "":
		text = " " + n.Why // there is no rule or path to name
	default:
		text += ": " + n.Why
	}
	return text
}

// shownValue is how many bytes of a value are shown above the diff, which shows it in full.
const shownValue = 60

// String describes the fact as an input of a rule.
func (f factReport) String() string {
	if f.Value == "" {
		return f.Name + " is not known"
	}
	return f.Name + " is " + f.Value + " " + term.Provenance(f.Source, f.From)
}

func (p *printer) outcome(x *callReport) {
	p.Line(term.Plain, "")
	switch x.Outcome {
	case outcomeGoesOn:
		p.Line(term.Heading, "the server gets")
		p.Line(term.Plain, "  "+string(x.Sent))
	case outcomeRefused:
		p.Line(term.Heading, "the server gets nothing, the client gets")
		p.Line(term.Plain, "  "+string(x.Answer))
		p.Wrapped(term.Bad, "the model reads: ", strings.Join(strings.Fields(x.Text), " "))
	default:
		p.Line(term.Heading, "nobody gets it")
	}
}

// replyEdits prints what the layers would do to a reply of the server.
func (p *printer) replyEdits(x *callReport) {
	first := true
	for i, part := range slices.Backward(x.Layers) {
		noted := slices.ContainsFunc(part.Notes, func(n noteReport) bool { return n.On == "reply" })
		if part.Reply == nil && !noted || x.Outcome != outcomeGoesOn {
			continue
		}
		if first {
			first = false
			p.Line(term.Plain, "")
			p.Line(term.Heading, "a reply of the server, on its way back")
		}
		p.Line(term.Plain, "")
		p.Line(term.Heading, fmt.Sprintf("%d  %s", i+1, part.Name))
		p.notes(part.Notes, "reply")
		if part.Reply != nil {
			p.Frame(part.Reply.Before, part.Reply.After)
		}
	}
}
