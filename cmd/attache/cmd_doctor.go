package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/sessionstate"
)

const doctorHelp = `Look at everything a session needs, and say what to do where something is wrong:
the configuration and the files it names, who the session would act for, what the
policy source says for them, a workspace's own policies, and the configuration
files of clients.

Behind "--" stands a server to look at as well. It is started once for each era of
the protocol and asked what it is and for its tools; no tool is called. doctor then
says which arguments of the tools attache fills, and suggests rules for those that
look like a workspace, project, organisation, repository or tenant. Nothing is
changed: rules are for you to paste.

The exit status is 0 if nothing is wrong, 1 if a problem was found, and 2 for a
mistake in doctor's own flags. Notes and warnings leave it at 0.`

const doctorExamples = `  attache doctor                             configuration, identity, policies, clients
  attache doctor -- npx -y @cyanheads/git-mcp-server
  attache doctor --workspace . --json -- my-server`

// A level says how bad a finding is.
type level string

const (
	levelOK      level = "ok"
	levelNote    level = "note"    // nothing is wrong, something could be better
	levelWarning level = "warning" // sessions work, perhaps not as expected
	levelProblem level = "problem" // sessions do not work as configured
)

// A finding is one thing that doctor found out.
type finding struct {
	// Check is the subject, such as "policies".
	Check string `json:"check"`
	Level level  `json:"level"`
	Text  string `json:"text"`
	// Do says what to do. Only what is well has none.
	Do string `json:"do,omitempty"`
}

// A diagnosis is all that doctor has to say, and its form for programs.
type diagnosis struct {
	Version   int             `json:"version"`
	Findings  []finding       `json:"findings"`
	Arguments []argumentGroup `json:"arguments,omitempty"`
	// Rules is the suggestion, in the form of the configuration.
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

// A doctor looks for what is wrong.
type doctor struct {
	*cli
	s *Settings
	diagnosis
	check string // the subject being looked at

	valid        bool                    // the configuration is
	principal    *sessionstate.Principal // nil if nobody is identified
	unidentified error                   // why not, nil where nobody is to be
}

// doctorCommand checks everything.
func (c *cli) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:         "doctor [flags] [-- COMMAND [ARG...]]",
		Short:       "Check configuration, keys, policies, clients and a server, and say what to do",
		Long:        doctorHelp,
		Example:     doctorExamples,
		Args:        noArguments,
		Annotations: map[string]string{mayTakeServer: "yes"},
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON instead of text")
	cmd.Flags().SortFlags = false
	flags := addFlags(cmd)
	for _, name := range []string{"record", "dry-run", "log-level", "log-format"} {
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.dashed && (len(c.server) == 0 || c.server[0] == "") {
			return usagef("nothing behind \"--\": give the server's command there, or leave \"--\" out")
		}
		s, err := loadSettings(c.process, flags)
		d := &doctor{cli: c, s: inert(s)}
		d.s.nameServer(c.server)
		d.examine(cmd.Context(), err)
		return d.report(*asJSON)
	}
	return cmd
}

// examine looks at everything. mistakes are those of the settings.
func (d *doctor) examine(ctx context.Context, mistakes error) {
	d.diagnosis = diagnosis{Version: 1, Findings: []finding{}}
	d.versions()
	d.configuration(mistakes)
	if d.valid {
		d.session()
		d.keys()
		d.identity(ctx)
		d.policies(ctx)
	}
	if len(d.server) > 0 {
		d.examineServer(ctx)
	}
	d.clients()
}

// report prints what was found, without secrets, and returns the exit status.
func (d *doctor) report(asJSON bool) error {
	d.scrub()
	var err error
	if asJSON {
		enc := json.NewEncoder(d.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(d.diagnosis)
	} else {
		err = d.print()
	}
	if err == nil && d.count(levelProblem) > 0 {
		return exitError(exitFailure)
	}
	return err
}

// scrub takes secrets out of what is printed: a server may say them, and so may
// the error of whoever was asked.
func (d *doctor) scrub() {
	secrets := recordSecrets(d.process, d.s, nil)
	secrets.Home, secrets.Host = "", ""
	if own, err := ownCredentialOf(d.process, d.s); err == nil && own.text != nil {
		if text, err := own.text(); err == nil {
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

// ok, note, warn and problem add a finding to the subject being looked at. All but
// ok say what to do.
func (d *doctor) ok(format string, args ...any) { d.add(levelOK, "", format, args...) }

func (d *doctor) note(do, format string, args ...any) { d.add(levelNote, do, format, args...) }

func (d *doctor) warn(do, format string, args ...any) { d.add(levelWarning, do, format, args...) }

func (d *doctor) problem(do, format string, args ...any) { d.add(levelProblem, do, format, args...) }

func (d *doctor) add(l level, do, format string, args ...any) {
	text := elided(strings.TrimSpace(fmt.Sprintf(format, args...)))
	d.Findings = append(d.Findings, finding{d.check, l, text, elided(do)})
}

// versions says what is running.
func (d *doctor) versions() {
	d.check = "version"
	words := strings.Fields(versionText(debug.ReadBuildInfo()))
	at := slices.Index(words, "go")
	d.ok("attache %s, %s, %s/%s", words[1], words[at+1], runtime.GOOS, runtime.GOARCH)
}
