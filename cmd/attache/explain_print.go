package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/sessionstate"
)

// layerWork says what each layer does, for `attache explain --chain`.
var layerWork = map[string]string{
	"trace":       "follows the call: trace context in _meta, spans and metrics",
	"audit":       "writes down what was decided",
	"capture":     "reads who and where out of the traffic; cuts credentials out",
	"rewrite":     "hides, renames, describes tools; sets arguments by rule",
	"access-list": "leaves out of tools/list what may not be called",
	"arguments":   "fills, pins and forbids arguments from the session; keeps the schema in step",
	"access":      "refuses calls that are not allowed; rates",
	"briefing":    "puts policies and objectives in front of the first response",
	"catalog":     "remembers what tools/list says, for the layers in front of it",

	audit.GateName: "lets a call go on when its record is written",
}

// printChain prints the layers of a session in order.
func (e *explainer) printChain() error {
	l, err := (&lasting{auditing: auditing{audits: true}}).build(e.process, e.s, e.log)
	if err != nil {
		return err
	}
	type link struct {
		Layer string `json:"layer"`
		Does  string `json:"does"`
	}
	chain := []link{}
	for _, layer := range l.list {
		chain = append(chain, link{layer.Name, layerWork[layer.Name]})
	}
	if e.json {
		return e.printJSON(chain)
	}
	fmt.Fprintln(e.Stdout, "client")
	for i, x := range chain {
		fmt.Fprintf(e.Stdout, "  %d  %-10s %s\n", i+1, x.Layer, x.Does)
	}
	_, err = fmt.Fprintln(e.Stdout, "server")
	return err
}

// print prints explanations for people.
func (e *explainer) print(calls []explained) error {
	var text bytes.Buffer
	p := &explainPrinter{demoPrinter{out: bufio.NewWriter(&text), colours: e.colours(e.Stdout)}}
	for i := range calls {
		if i > 0 {
			p.line(demoPlain, "")
		}
		p.call(&calls[i], i+1, len(calls))
	}
	_ = p.out.Flush() // into memory
	_, err := io.WriteString(e.Stdout, shownLines(text.String()))
	return err
}

// shownLines returns lines, in which there may be colours, without the control
// characters that names and values of peers bring: a terminal would obey them.
func shownLines(text string) string {
	parts := strings.SplitAfter(text, "\x1b[")
	for i, part := range parts {
		body, begins := strings.CutSuffix(part, "\x1b[")
		body = strings.Map(func(c rune) rune {
			if c == '\n' || c == '\t' {
				return c
			}
			return printable(c)
		}, body)
		if begins && i+1 < len(parts) && isColour(parts[i+1]) {
			body += "\x1b["
		} else if begins {
			body += "\uFFFD["
		}
		parts[i] = body
	}
	return strings.Join(parts, "")
}

// isColour reports whether text goes on as an escape that sets a colour.
func isColour(text string) bool {
	end := strings.TrimLeft(text, "0123456789;")
	return strings.HasPrefix(end, "m")
}

// An explainPrinter writes explanations.
type explainPrinter struct{ demoPrinter }

// diff prints a frame before and after. Each stands for itself, so nothing is left
// out for having been shown before.
func (p *explainPrinter) diff(e *explainedEdit) {
	p.layout = demoLayout{shown: map[string]bool{}}
	p.frame(e.Before, e.After)
}

func (p *explainPrinter) call(x *explained, n, of int) {
	what := strings.TrimSpace(x.Method + " " + x.Tool)
	if of > 1 {
		what = fmt.Sprintf("%d of %d  %s", n, of, what)
	}
	v := verdictOf(x)
	gap := max(2, demoWidth-utf8.RuneCountInString(what+v.text))
	p.line(demoPlain, p.in(demoHeading, what)+strings.Repeat(" ", gap)+p.in(v.style, v.text))
	p.wrapped("schema: ", x.Schema, demoQuiet)
	if x.Hidden {
		hidden := "the model is not shown this tool"
		if x.Outcome == outcomeGoesOn {
			hidden += "; a client may call it all the same"
		}
		p.wrapped("hidden: ", hidden, demoLogged)
	}
	p.facts(x.Facts)
	if x.Ambiguity != "" {
		p.line(demoPlain, "")
		p.wrapped("ambiguous: ", x.Ambiguity+"; so parsers may read it differently, and no layer sees it. "+ambiguityRule(x), demoLogged)
	}
	for i, part := range x.Layers {
		if x.Ambiguity == "" {
			p.request(i+1, part, x)
		}
	}
	p.outcome(x)
	p.wayBack(x)
}

func verdictOf(x *explained) demoVerdict {
	switch {
	case x.Outcome == outcomeRefused:
		return demoVerdict{demoBad, "refused by " + x.By}
	case x.Outcome == outcomeDropped:
		return demoVerdict{demoBad, "dropped by " + x.By}
	case string(x.Sent) != string(x.Frame):
		return demoVerdict{demoGood, "goes on, changed"}
	}
	return demoVerdict{demoGood, "goes on, unchanged"}
}

// ambiguityRule says what holds for ambiguous frames.
func ambiguityRule(x *explained) string {
	if x.Outcome == outcomeRefused {
		return "With a rule that enforces (access, pin, forbid), or a credential in it, it is refused."
	}
	return "As no rule enforces (access, pin, forbid), it passes as it is; with one it would be refused."
}

// facts prints what is known of the session.
func (p *explainPrinter) facts(facts []explainedFact) {
	if len(facts) == 0 {
		return
	}
	width := 0
	for _, f := range facts {
		width = max(width, len(f.Name))
	}
	p.line(demoPlain, "")
	p.line(demoHeading, "what is known of the session")
	for _, f := range facts {
		p.line(demoPlain, fmt.Sprintf("  %-*s  %s", width, f.Name, f.Value)+p.in(demoQuiet, "  "+f.provenance()))
	}
}

// provenance says where a fact is from.
func (f explainedFact) provenance() string {
	switch {
	case f.From == "":
		return "(" + f.Source + ")"
	case f.Source == sessionstate.None.String():
		return "(" + f.From + ")"
	}
	return "(" + f.Source + ": " + f.From + ")"
}

func (p *explainPrinter) request(n int, part explainedPart, x *explained) {
	p.line(demoPlain, "")
	title := fmt.Sprintf("%d  %s", n, part.Name)
	if !part.Reached {
		p.line(demoPlain, p.in(demoQuiet, title+": not reached"))
		return
	}
	p.line(demoHeading, title)
	told := p.notes(part.Notes, "request")
	switch {
	case part.Request != nil:
		p.diff(part.Request)
	case !told && x.By != part.Name:
		p.line(demoQuiet, "  nothing to do")
	}
}

// notes prints what rules did on one of the two ways, and reports whether they did
// anything.
func (p *explainPrinter) notes(notes []explainedNote, on string) bool {
	told := false
	for _, n := range notes {
		if n.On != on {
			continue
		}
		told = true
		head := p.in(actStyle(n.Act), fmt.Sprintf("%-8s", n.Act))
		if n.Rule != "" {
			head += " " + n.Rule
		}
		p.line(demoPlain, "  "+head+tail(n))
		if n.Config != "" {
			p.line(demoQuiet, "           rule: "+n.Config)
		}
		for _, f := range n.Inputs {
			p.line(demoQuiet, "           "+f.String())
		}
	}
	return told
}

// tail says what a rule did: where, what, from where, and why.
func tail(n explainedNote) string {
	text := ""
	if len(n.Path) > 0 {
		text += "  " + strings.Join(n.Path, ".")
	}
	switch {
	case n.Act != string(middleware.Edited):
	case n.After == nil:
		text += " removed"
	case n.Before == nil:
		text += " = " + brief(n.After)
	default:
		text += " = " + brief(n.After) + " instead of " + brief(n.Before)
	}
	if n.Source != "" {
		text += ", from " + n.Source
	}
	switch {
	case n.Why == "":
	case text == "" && n.Rule == "":
		text = " " + n.Why // there is nothing that it is said of
	default:
		text += ": " + n.Why
	}
	return text
}

// brief cuts a value that the diff below shows whole.
func brief(raw json.RawMessage) string {
	if text := []rune(string(raw)); len(text) > 60 {
		return string(text[:60]) + "…"
	}
	return string(raw)
}

// String says what a rule was given.
func (f explainedFact) String() string {
	if f.Value == "" {
		return f.Name + " is not known"
	}
	return f.Name + " is " + f.Value + " " + f.provenance()
}

func actStyle(act string) demoStyle {
	switch middleware.Act(act) {
	case middleware.Refused, middleware.Failed:
		return demoBad
	case middleware.Edited, middleware.Allowed:
		return demoGood
	case middleware.Kept:
		return demoLogged
	}
	return demoQuiet
}

// outcome prints what comes out in the end.
func (p *explainPrinter) outcome(x *explained) {
	p.line(demoPlain, "")
	switch x.Outcome {
	case outcomeGoesOn:
		p.line(demoHeading, "the server gets")
		p.line(demoPlain, "  "+string(x.Sent))
	case outcomeRefused:
		p.line(demoHeading, "the server gets nothing, the client gets")
		p.line(demoPlain, "  "+string(x.Answer))
		p.wrapped("the model reads: ", x.Text, demoBad)
	default:
		p.line(demoHeading, "nobody gets it")
	}
}

// wayBack prints what would be done to an answer of the server's.
func (p *explainPrinter) wayBack(x *explained) {
	first := true
	for i := len(x.Layers) - 1; i >= 0; i-- {
		part := x.Layers[i]
		if part.Reply == nil && !onReply(part.Notes) || x.Outcome != outcomeGoesOn {
			continue
		}
		if first {
			first = false
			p.line(demoPlain, "")
			p.line(demoHeading, "an answer of the server's, on its way back")
		}
		p.line(demoPlain, "")
		p.line(demoHeading, fmt.Sprintf("%d  %s", i+1, part.Name))
		p.notes(part.Notes, "reply")
		if part.Reply != nil {
			p.diff(part.Reply)
		}
	}
}

func onReply(notes []explainedNote) bool {
	for _, n := range notes {
		if n.On == "reply" {
			return true
		}
	}
	return false
}

// wrapped writes a text of several words, wrapped.
func (p *explainPrinter) wrapped(lead, text string, style demoStyle) {
	if text == "" {
		return
	}
	line := lead
	indent := strings.Repeat(" ", len(lead))
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(line+word) > demoWidth && strings.TrimSpace(line) != "" {
			p.line(style, line)
			line = indent
		}
		line += word + " "
	}
	p.line(style, line)
}
