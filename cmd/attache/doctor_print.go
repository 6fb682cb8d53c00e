package main

import (
	"bufio"
	"strings"
	"unicode/utf8"
)

// print prints the diagnosis for people.
func (d *doctor) print() error {
	p := &demoPrinter{out: bufio.NewWriter(d.Stdout), colours: d.colours(d.Stdout)}
	check := ""
	for _, f := range d.Findings {
		if f.Check != check {
			check = f.Check
			p.line(demoHeading, check)
		}
		style := map[level]demoStyle{levelOK: demoGood, levelNote: demoQuiet, levelWarning: demoLogged, levelProblem: demoBad}[f.Level]
		p.hanging(doctorMark(f.Level), f.Text, style)
		if f.Do != "" {
			p.hanging("           do: ", f.Do, demoWhy)
		}
	}
	if d.Rules != "" {
		p.line(demoHeading, "rules to paste into the configuration, once you have looked at them")
		for line := range strings.Lines(d.Rules) {
			p.line(demoPlain, "  "+strings.TrimSuffix(line, "\n"))
		}
	}
	p.line(demoPlain, "")
	p.line(demoHeading, plural(d.count(levelProblem), "problem")+", "+plural(d.count(levelWarning), "warning")+", "+plural(d.count(levelNote), "note"))
	return p.out.Flush()
}

// doctorMark begins a line of a finding.
func doctorMark(l level) string {
	return "  " + string(l) + strings.Repeat(" ", max(1, 9-len(l)))
}

// hanging writes text behind lead. On a terminal it is wrapped, and aligned behind
// lead; anywhere else, where it may be searched, it is one line.
func (p *demoPrinter) hanging(lead, text string, style demoStyle) {
	if !p.colours {
		p.line(style, lead+text)
		return
	}
	indent := strings.Repeat(" ", len(lead))
	line, begun := lead, false
	for _, word := range strings.Split(text, " ") {
		if begun && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > demoWidth {
			p.line(style, line)
			line, begun = indent, false
		}
		if begun {
			line += " "
		}
		line, begun = line+word, true
	}
	p.line(style, line)
}
