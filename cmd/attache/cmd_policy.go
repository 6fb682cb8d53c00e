package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/policies"
)

func (c *program) policyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "policy",
		Short: "Show the policies of a scope as they would be injected; check policy files",
		Long: `Policies and objectives precede the first tool response of a session. They come from
a directory of YAML files or from an HTTP endpoint, and belong to a scope, which inherits from
its parents.`,
		Example: `  attache policy show --policy ./policies --scope acme/platform
  attache policy check --policy ./policies`,
	}, c.policyShow(), c.policyCheck())
}

func (c *program) policyShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [flags]",
		Short: "Print exactly the block that would be injected for --scope, or for the API key's principal",
		Long: `Print the block that a session would receive: for the scope of the principal of ATTACHE_API_KEY
or --api-key-file, else for --scope. It prints the exact bytes of the block; on a
terminal it colours the parts.`,
		Example: `  attache policy show --policy ./policies --scope acme/platform
  ATTACHE_API_KEY=atk_... attache policy show`,
		Args: noArguments,
	}
	return c.readsPolicies(cmd, policies.Command.Show)
}

func (c *program) policyCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags]",
		Short: "Find the mistakes in policy files: file:line:column and what to do, exit status 2 if there are any",
		Long: `Read all policy files as attache would and print each mistake as file:line:column, with what to
do. The exit status is 2 if there are any; warnings do not change it. An endpoint is asked once,
for the scope or the key given, and its answer is printed.`,
		Example: `  attache policy check --policy ./policies
  attache policy check --policy https://policy.example/effective --scope acme`,
		Args: noArguments,
	}
	return c.readsPolicies(cmd, policies.Command.Check)
}

// readsPolicies makes cmd load the settings and call run.
func (c *program) readsPolicies(cmd *cobra.Command, run func(policies.Command, context.Context) error) *cobra.Command {
	flags := config.AddFlags(cmd)
	for _, name := range []string{"bearer-env", "record", "stdout-noise", "dry-run", "log-level", "log-format"} {
		_ = cmd.Flags().MarkHidden(name)
	}
	return c.withSettings(cmd, flags, func(ctx context.Context, s *config.Settings, _ []string) error {
		return run(policies.Command{Process: c.Process, Settings: s}, ctx)
	})
}
