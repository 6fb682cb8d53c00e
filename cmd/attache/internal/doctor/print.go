package doctor

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

func (d *Doctor) print() error {
	p := &term.Printer{Out: bufio.NewWriter(d.Stdout), Colours: term.HasColour(d.Getenv, d.Stdout)}
	check := ""
	for _, f := range d.Findings {
		if f.Check != check {
			check = f.Check
			p.Line(term.Heading, check)
		}
		style := map[level]term.Style{levelOK: term.Good, levelNote: term.Quiet, levelWarning: term.Notice, levelProblem: term.Bad}[f.Level]
		p.Hanging(style, fmt.Sprintf("  %-9s", f.Level), f.Text)
		if f.Do != "" {
			p.Hanging(term.Reason, "           do: ", f.Do)
		}
	}
	if d.Rules != "" {
		p.Line(term.Heading, "rules to paste into the configuration, once you have looked at them")
		for line := range strings.Lines(d.Rules) {
			p.Line(term.Plain, "  "+strings.TrimSuffix(line, "\n"))
		}
	}
	p.Line(term.Plain, "")
	p.Line(term.Heading, cli.Plural(d.count(levelProblem), "problem")+", "+cli.Plural(d.count(levelWarning), "warning")+", "+cli.Plural(d.count(levelNote), "note"))
	return p.Out.Flush()
}
