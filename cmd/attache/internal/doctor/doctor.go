// Package doctor checks everything that a session needs, and suggests what to do about problems. It changes
// nothing and calls no tool.
package doctor

import (
	"bufio"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/sessionstate"
)

// A level is the severity of a finding.
type level string

const (
	levelOK      level = "ok"
	levelNote    level = "note"    // something could be better
	levelWarning level = "warning" // sessions work, but perhaps not as expected
	levelProblem level = "problem" // sessions do not work as configured
)

// A finding is one result of a check.
type finding struct {
	// Check is the subject, such as "policies".
	Check string `json:"check"`
	Level level  `json:"level"`
	Text  string `json:"text"`
	// Do is the remedy; "" if there is nothing to do.
	Do string `json:"do,omitempty"`
}

// A diagnosis is the result of all checks, as printed with --json.
type diagnosis struct {
	Version   int             `json:"version"`
	Findings  []finding       `json:"findings"`
	Arguments []argumentGroup `json:"arguments,omitempty"`
	// Rules are the suggested rules, in the syntax of the configuration.
	Rules string `json:"rules,omitempty"`
}

func (d *diagnosis) count(l level) (n int) {
	for _, f := range d.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}

// A Doctor checks one configuration.
type Doctor struct {
	cli.Process
	Server   []string // the command after "--"
	Version  string   // the output of "attache version"
	Settings *config.Settings
	diagnosis
	check string // the current subject

	valid        bool                    // the configuration is valid
	principal    *sessionstate.Principal // nil if nobody is identified
	unidentified error                   // why nobody is identified, nil without a credential
	wrapped      []string                // the names of the servers behind the attaches in clients' files
}

// Examine runs all checks. mistakes are the mistakes in the settings.
func (d *Doctor) Examine(ctx context.Context, mistakes error) {
	d.diagnosis = diagnosis{Version: 1, Findings: []finding{}}
	d.versions()
	d.configuration(mistakes)
	if d.valid {
		d.session()
		d.store(ctx)
		d.keys()
		d.tokenKeys(ctx)
		d.identity(ctx)
		d.policies(ctx)
		d.agents()
	}
	if len(d.Server) > 0 {
		d.examineServer(ctx)
	}
	d.clients()
}

// Report prints the findings, without secrets, and returns the exit status.
func (d *Doctor) Report(asJSON bool) error {
	d.scrub()
	var err error
	if asJSON {
		err = term.WriteJSON(d.Stdout, d.diagnosis)
	} else {
		err = d.print()
	}
	if err == nil && d.count(levelProblem) > 0 {
		return cli.ExitError(cli.ExitFailure)
	}
	return err
}

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

// scrub removes secrets from the findings, because texts of a server or of an error may contain them.
func (d *Doctor) scrub() {
	secrets := config.Secrets(d.Process, d.Settings, nil)
	secrets.Home, secrets.Host, secrets.Prose = "", "", true
	if own, err := assembly.OperatorCredential(d.Process, d.Settings); err == nil && own.Text != nil {
		if text, err := own.Text(); err == nil {
			secrets.Values = append(secrets.Values, text)
		}
	}
	scrubber := record.NewScrubber(secrets)
	clean := func(text *string) { *text = string(scrubber.Line([]byte(*text))) }
	for i := range d.Findings {
		clean(&d.Findings[i].Text)
		clean(&d.Findings[i].Do)
	}
}

// ok, note, warn and problem add a finding to the current subject. do is the remedy.
func (d *Doctor) ok(format string, args ...any) { d.add(levelOK, "", format, args...) }

func (d *Doctor) note(do, format string, args ...any) { d.add(levelNote, do, format, args...) }

func (d *Doctor) warn(do, format string, args ...any) { d.add(levelWarning, do, format, args...) }

func (d *Doctor) problem(do, format string, args ...any) { d.add(levelProblem, do, format, args...) }

func (d *Doctor) add(l level, do, format string, args ...any) {
	lines := strings.NewReplacer("\n\t", " ", "\n", " ") // PostgreSQL's driver names each address on a line of its own
	text := cli.Elided(lines.Replace(strings.TrimSpace(fmt.Sprintf(format, args...))))
	d.Findings = append(d.Findings, finding{d.check, l, text, cli.Elided(do)})
}

func (d *Doctor) versions() {
	d.check = "version"
	words := strings.Fields(d.Version)
	at := slices.Index(words, "go")
	d.ok("attache %s, %s, %s/%s", words[1], words[at+1], runtime.GOOS, runtime.GOARCH)
}
