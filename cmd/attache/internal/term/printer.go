// Package term prints for people: colours on a terminal, wrapped lines, and diffs of messages.
package term

import (
	"bufio"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/middleware"
)

// Width is the width of the output in columns.
const Width = 80

// A Printer writes lines to Out. Out.Flush returns the first error.
type Printer struct {
	Out     *bufio.Writer
	Colours bool
}

// A Style is a colour, named after its purpose (ECMA-48, SGR).
type Style string

const (
	Plain   Style = ""
	Heading Style = "1"  // bold
	Quiet   Style = "2"  // faint
	Bad     Style = "31" // red
	Good    Style = "32" // green
	Notice  Style = "33" // yellow
	Reason  Style = "36" // cyan
)

// OfAct returns the style for an act of package middleware.
func OfAct(act string) Style {
	switch middleware.Act(act) {
	case middleware.Refused, middleware.Failed:
		return Bad
	case middleware.Edited, middleware.Allowed:
		return Good
	case middleware.Kept:
		return Notice
	}
	return Quiet
}

// Paint returns text in a style, or unchanged text without colours.
func Paint(colours bool, style Style, text string) string {
	if !colours || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// In returns text in a style.
func (p *Printer) In(style Style, text string) string { return Paint(p.Colours, style, text) }

// Line writes a line without trailing spaces.
func (p *Printer) Line(style Style, text string) {
	p.Out.WriteString(p.In(style, strings.TrimRight(text, " ")))
	p.Out.WriteByte('\n')
}

// Title writes the title of a section.
func (p *Printer) Title(text string) {
	p.Line(Plain, "")
	p.Line(Heading, "═══ "+text+" "+strings.Repeat("═", max(0, Width-5-utf8.RuneCountInString(text))))
}

// Heading writes the heading of a message, with attache's verdict at the right margin.
func (p *Printer) Heading(text string, v Verdict) {
	gap := max(2, Width-utf8.RuneCountInString(text+v.Text))
	p.Line(Plain, p.In(Heading, text)+strings.Repeat(" ", gap)+p.In(v.Style, v.Text))
}

// Why writes a reason, if there is one.
func (p *Printer) Why(text string) {
	if text != "" {
		p.Line(Reason, "» "+text)
	}
}

// A Verdict describes what attache did to a message.
type Verdict struct {
	Style Style
	Text  string
}

// Hanging writes text after lead. On a terminal it wraps the text. In a file or a pipe the text stays on
// one line, so that users can search for it.
func (p *Printer) Hanging(style Style, lead, text string) {
	if !p.Colours {
		p.Line(style, lead+text)
		return
	}
	p.Wrapped(style, lead, text)
}

// Wrapped writes text after lead, wrapped into lines that begin at the same column. If text is empty, it
// writes nothing.
func (p *Printer) Wrapped(style Style, lead, text string) {
	if text == "" {
		return
	}
	line, indent, first := lead, strings.Repeat(" ", utf8.RuneCountInString(lead)), true
	for word := range strings.SplitSeq(text, " ") {
		if !first && utf8.RuneCountInString(line+word) > Width {
			p.Line(style, line)
			line = indent
		}
		line, first = line+word+" ", false
	}
	p.Line(style, line)
}
