package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// Every command has a unique name, a description, and does something.
func TestCommands(t *testing.T) {
	root := (&program{}).rootCommand([]string{"any"})
	root.InitDefaultHelpCmd()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		seen := map[string]bool{}
		for _, sub := range cmd.Commands() {
			if seen[sub.Name()] {
				t.Errorf("%q appears twice", sub.CommandPath())
			}
			seen[sub.Name()] = true
			if sub.Short == "" || sub.Long == "" {
				t.Errorf("%q does not say what it does, in a line and in full", sub.CommandPath())
			}
			checkExamples(t, sub)
			if sub.RunE == nil {
				t.Errorf("%q does nothing", sub.CommandPath())
			}
			walk(sub)
		}
	}
	checkExamples(t, root)
	walk(root)
}

// checkExamples checks the examples of a command: lines that call it or a subcommand, with flags and arguments
// that it accepts.
func checkExamples(t *testing.T, cmd *cobra.Command) {
	t.Helper()
	own := 0
	for line := range strings.Lines(cmd.Example) {
		args, ok := commandLine(line)
		if !ok {
			continue // what surrounds it, such as the next command of a pipe
		}
		if err := parseCommand(args); err != nil {
			t.Errorf("%q: %v: %s", cmd.CommandPath(), err, line)
		}
		if strings.HasPrefix(strings.Join(append([]string{"attache"}, args...), " ")+" ", cmd.CommandPath()+" ") {
			own++
		}
	}
	if own == 0 {
		t.Errorf("%q has no example of itself", cmd.CommandPath())
	}
}

// An error may contain text from a server: its control characters must not reach the terminal.
func TestErrorIsPrintable(t *testing.T) {
	var stderr strings.Builder
	c := &program{Process: cli.Process{Stderr: &stderr}}
	if c.exitStatus(errors.New("500 \x1b[2J\u009b2J\u202ex\nsecond line")) != cli.ExitFailure || stderr.String() != "attache: 500 \ufffd[2J\ufffd2J\ufffdx\nsecond line\n" {
		t.Errorf("%q", stderr.String())
	}
}

// When started by a client, attache builds no subcommands; after "--" their names belong to the server.
func TestNoSubcommandsBehindDashes(t *testing.T) {
	c := &program{}
	args := c.split([]string{"--", "demo", "--", "--help"})
	if len(args) != 0 || args == nil || !c.dashed || strings.Join(c.server, " ") != "demo -- --help" {
		t.Errorf("args %q, server %q", args, c.server)
	}
	if subs := c.rootCommand(args).Commands(); len(subs) > 0 {
		t.Errorf("%d subcommands were made", len(subs))
	}
}

func TestFlagsAlone(t *testing.T) {
	for args, want := range map[string]bool{
		"":                             true,
		"--workspace /src":             true,
		"--scope run":                  true,
		"--dry-run --config=a.yaml":    true,
		"--config a.yaml run":          false,
		"run":                          false,
		"explain --tool x":             false,
		"--help":                       false, // which lists the commands
		"--workspcae /src":             false, // told by the command that it is for
		"--workspace":                  false,
		"--log-level debug stray word": false,
	} {
		if got := flagsAlone(strings.Fields(args)); got != want {
			t.Errorf("flagsAlone(%q) = %t", args, got)
		}
	}
}
