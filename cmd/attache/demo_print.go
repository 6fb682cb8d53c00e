package main

import (
	"bufio"
	"strings"
	"unicode/utf8"
)

// A demoPrinter writes the demo. Errors of out are kept by it until its Flush.
type demoPrinter struct {
	out     *bufio.Writer
	colours bool
	layout  demoLayout
}

// A demoStyle is a colour by what it is for (ECMA-48, SGR).
type demoStyle string

const (
	demoPlain   demoStyle = ""
	demoHeading demoStyle = "1"  // bold
	demoQuiet   demoStyle = "2"  // faint
	demoBad     demoStyle = "31" // red
	demoGood    demoStyle = "32" // green
	demoLogged  demoStyle = "33" // yellow
	demoWhy     demoStyle = "36" // cyan
)

// painted returns text in a style, as it is without colours.
func painted(colours bool, style demoStyle, text string) string {
	if !colours || style == demoPlain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// in returns text in a style.
func (p *demoPrinter) in(style demoStyle, text string) string { return painted(p.colours, style, text) }

// line writes a line, without the spaces at its end.
func (p *demoPrinter) line(style demoStyle, text string) {
	p.out.WriteString(p.in(style, strings.TrimRight(text, " ")))
	p.out.WriteByte('\n')
}

// title begins an act.
func (p *demoPrinter) title(text string) {
	p.line(demoPlain, "")
	p.line(demoHeading, "═══ "+text+" "+strings.Repeat("═", max(0, demoWidth-5-utf8.RuneCountInString(text))))
}

// heading says which way a message went, what it is, and at the right margin what
// attache did to it.
func (p *demoPrinter) heading(way, what string, v demoVerdict) {
	left := way + "  " + what
	gap := max(2, demoWidth-utf8.RuneCountInString(left+v.text))
	p.line(demoPlain, p.in(demoHeading, left)+strings.Repeat(" ", gap)+p.in(v.style, v.text))
}

// frame writes a frame before and after.
func (p *demoPrinter) frame(before, after []byte) {
	for _, l := range p.layout.frame(demoDiff(before, after)) {
		style := demoPlain
		switch l.op {
		case demoAdded:
			style = demoGood
		case demoRemoved:
			style = demoBad
		}
		p.line(style, string(rune(l.op))+" "+strings.Repeat(" ", l.indent)+l.text)
	}
}

// beginning writes what fits on a line of a frame. The rest counts as shown.
func (p *demoPrinter) beginning(frame []byte) {
	p.layout.frame(demoDiff(frame, frame))
	text := []rune(string(frame))
	if n := demoWidth - demoMargin; len(text) > n {
		text = append(text[:n-1], '…')
	}
	p.line(demoQuiet, "  "+string(text))
}

// why writes a reason, if there is one.
func (p *demoPrinter) why(text string) {
	if text != "" {
		p.line(demoWhy, "» "+text)
	}
}

// logged writes what attache logged, wrapped.
func (p *demoPrinter) logged(text string) {
	line := "log:"
	for _, word := range strings.Fields(text) {
		if utf8.RuneCountInString(line+" "+word) > demoWidth {
			p.line(demoLogged, line)
			line = "    "
		}
		line += " " + word
	}
	if text != "" {
		p.line(demoLogged, line)
	}
}
