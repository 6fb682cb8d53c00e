package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command there is has a name of its own, says what it does, and does it.
func TestCommands(t *testing.T) {
	root := (&cli{}).rootCommand([]string{"any"})
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		seen := map[string]bool{}
		for _, sub := range cmd.Commands() {
			if seen[sub.Name()] {
				t.Errorf("%q is there twice", sub.CommandPath())
			}
			seen[sub.Name()] = true
			if sub.Short == "" && !sub.Hidden {
				t.Errorf("%q does not say what it does", sub.CommandPath())
			}
			if sub.RunE == nil {
				t.Errorf("%q does nothing", sub.CommandPath())
			}
			walk(sub)
		}
	}
	walk(root)
}

// As clients start it, attache makes no subcommands; behind "--" their names are
// the server's.
func TestNoSubcommandsBehindDashes(t *testing.T) {
	c := &cli{}
	args := c.split([]string{"--", "demo", "--", "--help"})
	if len(args) != 0 || args == nil || !c.dashed || strings.Join(c.server, " ") != "demo -- --help" {
		t.Errorf("args %q, server %q", args, c.server)
	}
	if subs := c.rootCommand(args).Commands(); len(subs) > 0 {
		t.Errorf("%d subcommands were made", len(subs))
	}
}
