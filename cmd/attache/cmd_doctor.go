package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/doctor"
)

const doctorHelp = `Check everything a session needs, and say what to do if something is wrong: the configuration
and the files it names, who the session would act for, what the policy source says for them, a
workspace's own policies, and the configuration files of clients.

A server after "--", or that of an entry (--server), is checked as well. It is started once for
each era of the protocol and asked for its identity and its tools; no tool is called. doctor
then says which arguments of the tools attache fills, and suggests rules for those that look
like a workspace, project, organisation, repository or tenant. It changes nothing.

The exit status is 0 if nothing is wrong, 1 if a problem was found, and 2 for a mistake in
doctor's own flags. Notes and warnings leave it at 0.`

const doctorExamples = `  attache doctor                             configuration, identity, policies, clients
  attache doctor -- npx -y @cyanheads/git-mcp-server
  attache doctor --workspace . --json -- my-server`

func (c *program) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:         "doctor [flags] [-- COMMAND [ARG...]]",
		Short:       "Check configuration, keys, policies, clients and a server, and say what to do",
		Long:        doctorHelp,
		Example:     doctorExamples,
		Args:        noArguments,
		Annotations: map[string]string{mayTakeServer: "yes"},
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON instead of text")
	entry := cmd.Flags().String("server", "", "the `NAME` of an entry of servers with a command or URL, instead of a server after \"--\"")
	flags := config.AddFlags(cmd)
	for _, name := range []string{"record", "dry-run", "log-level", "log-format"} {
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if c.dashed && (len(c.server) == 0 || c.server[0] == "") {
			return cli.Usagef("nothing after \"--\": give the server's command there, or leave \"--\" out")
		}
		s, server, err := config.LoadNamed(c.Process, flags, *entry, c.server, c.dashed)
		if s == nil {
			return err
		}
		d := &doctor.Doctor{Process: c.Process, Server: server, Version: versionText(debug.ReadBuildInfo()), Settings: config.Inert(s)}
		d.Examine(cmd.Context(), err)
		return d.Report(*asJSON)
	}
	return cmd
}
