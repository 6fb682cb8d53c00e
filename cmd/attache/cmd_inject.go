package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/inject"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

func (c *program) injectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inject [flags] [FILE]",
		Short: "Write a session's context into the servers of a configuration",
		Long: `Reads a configuration with "mcpServers" from FILE, or from stdin, and prints it
with the session's context in the environment of every server: <PREFIX>_SESSION_ID,
_WORKSPACE_ID, _WORKSPACE_PATH, _TRUST_LEVEL, _USER_ID and _TENANT_ID under each
prefix. Variables that are set already are not overwritten; nothing else changes.

It leaves out servers for which the session's trust is too low ("inject.servers" in
attache's configuration) and servers that the workspace does not have
("inject.workspaces"). Variables that the configuration sets for a server in a workspace
replace all others.`,
		Example: `  attache inject --session sess_abc123 --workspace-id my-project --trust sandboxed .mcp.json
  attache inject --session "$ID" --user ada --prefix PARACHUTE < vault/.mcp.json > session.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("%d files: give one, or none to read stdin", len(args))
			}
			return nil
		},
	}
	flags := setting.NewFlags(cmd)
	wanted := []string{"session", "workspace-id", "workspace", "trust", "session-file", "api-key-file", "token-file", "log-level", "log-format"}
	for _, o := range config.Options(&config.Settings{}) {
		if slices.Contains(wanted, o.Flag) {
			flags.Add(cmd, o.Flag, o.Hint, o.Help)
		}
	}
	var user string
	var prefixes []string
	cmd.Flags().StringVar(&user, "user", "", "who the session acts for; the same as "+config.UserVariable+"=`NAME`")
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "a `PREFIX` of the variables, instead of session.env_prefixes; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.inject(cmd.Context(), flags, user, prefixes, args)
	}
	return cmd
}

// inject reads a configuration and prints it with the session's context.
func (c *program) inject(ctx context.Context, flags setting.Flags, user string, prefixes, args []string) error {
	p := c.Process
	if user != "" {
		p.Env = append([]string{config.UserVariable + "=" + user}, p.Env...) // the first entry counts
	}
	s, err := config.Load(p, flags, nil)
	if err != nil {
		return err
	}
	for _, prefix := range prefixes {
		if err := config.CheckVariable(prefix); err != nil {
			return cli.Usagef("--prefix: %v", err)
		}
		s.Session.EnvPrefixes = prefixes
	}
	session, err := inject.Context(ctx, p, s)
	if err != nil {
		return err
	}
	data, name, err := inject.Read(c.Process, args)
	if err != nil {
		return err
	}
	log := logging.New(p, s, c.Stderr)
	done, err := clientconfig.Inject(data, inject.Plan(session, s))
	if err != nil {
		return cli.Usagef("%s: %v", name, err)
	}
	inject.Log(log, done, session, s)
	_, err = c.Stdout.Write(done.Content)
	return err
}
