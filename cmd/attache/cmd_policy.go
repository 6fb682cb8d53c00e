package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
)

// policyCommand looks at the policies.
func (c *program) policyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "policy",
		Short: "Show the policies of a scope as they would be injected; check policy files",
		Long: `Policies and objectives stand in front of the first tool response of a session. They come from
a directory of YAML files or from an HTTP endpoint, and belong to a scope, which inherits from
its parents.`,
		Example: `  attache policy show --policy ./policies --scope acme/platform
  attache policy check --policy ./policies`,
	}, c.policyShow(), c.policyCheck())
}

// policyShow prints the block that a session would be given.
func (c *program) policyShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [flags]",
		Short: "Print exactly the block that would be injected for --scope, or for the API key's principal",
		Long: `Print the block that a session would be given: for the scope of the principal that ATTACHE_API_KEY
or --api-key-file stands for, else for --scope. What it prints is the block to the byte; on a
terminal its parts are set off by colour.`,
		Example: `  attache policy show --policy ./policies --scope acme/platform
  ATTACHE_API_KEY=atk_... attache policy show`,
		Args: noArguments,
	}
	flags := config.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := config.Load(c.Process, flags, nil)
		if err != nil {
			return err
		}
		source, err := assembly.SessionSource(c.Process, s, logging.New(c.Process, s, c.Stderr))
		if err != nil {
			return err
		}
		e, _, err := c.ask(cmd.Context(), s, source)
		if err != nil {
			return err
		}
		c.showHidden(e)
		block := policy.Render(e, s.Briefing.MaxBytes)
		if term.HasColour(c.Getenv, c.Stdout) {
			block = term.PaintBlock(block)
		}
		_, err = fmt.Fprintln(c.Stdout, block)
		return err
	}
	return cmd
}

// showHidden reports policies with characters that cannot be seen, and shows them.
func (c *program) showHidden(e policy.Effective) {
	show := func(what, text string) {
		if shown, hidden := policy.Escape(text); hidden > 0 {
			fmt.Fprintf(c.Stderr, "attache: %s has %d characters that cannot be seen; the block leaves them out: %s\n", what, hidden, strings.ReplaceAll(shown, "\n", " "))
		}
	}
	for i, p := range e.Policies {
		show(fmt.Sprintf("policy %d", i+1), p.Name+": "+p.Text)
	}
	for i, o := range e.Objectives {
		show(fmt.Sprintf("objective %d", i+1), o)
	}
}

// ask asks source what a session would. The error says what to do.
func (c *program) ask(ctx context.Context, s *config.Settings, source policy.Source) (policy.Effective, policy.Query, error) {
	q, err := assembly.PolicyQuery(ctx, c.Process, s)
	if err != nil {
		return policy.Effective{}, q, err
	}
	e, err := source.Effective(ctx, q)
	if err != nil {
		err = c.explainSource(s, q, err)
	}
	return e, q, err
}

// explainSource says what to do about an error of the source.
func (c *program) explainSource(s *config.Settings, q policy.Query, err error) error {
	switch {
	case errors.Is(err, policy.ErrUnknownScope):
		return c.unknownScope(s, q, err)
	case errors.Is(err, policy.ErrInvalid) && s.Policy.Dir != "":
		if checked := c.checkFiles(s.Policy.Dir); checked != nil {
			return checked
		}
	case s.Policy.Dir != "":
		return cli.Usagef("%v", err)
	case errors.Is(err, policy.ErrUnauthorized):
		return fmt.Errorf("%w: give a key it knows in ATTACHE_API_KEY, or its token by policy.token_env", err)
	}
	return err
}

// unknownScope names the scopes there are.
func (c *program) unknownScope(s *config.Settings, q policy.Query, err error) error {
	if s.Policy.Dir == "" {
		return cli.Usagef("%v: correct --scope or policy.scope", err)
	}
	scopes, _ := filesource.Load(s.Policy.Dir)
	names := slices.Sorted(maps.Keys(scopes))
	switch near := cli.Nearest(q.Scope, names); {
	case len(names) == 0:
		return cli.Usagef("there is no policy file in %s: write one, or correct --policy", s.Policy.Dir)
	case q.Scope == "":
		return cli.Usagef("no scope is given: give one of %s with --scope, or in policy.scope", cli.Quoted(names))
	case near != "":
		return cli.Usagef("there is no scope %q: did you mean %q?", q.Scope, near)
	}
	return cli.Usagef("there is no scope %q in %s: give one of %s with --scope, or in policy.scope", q.Scope, s.Policy.Dir, cli.Quoted(names))
}

// policyCheck finds the mistakes in policies.
func (c *program) policyCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags]",
		Short: "Find the mistakes in policy files: file:line:column and what to do, exit status 2 if there are any",
		Long: `Read all policy files as attache would and print each mistake as file:line:column, with what to
do. Exit status 2 if there are any; a warning alone leaves it 0. An endpoint is asked once,
for the scope or the key given, and what it answered is told.`,
		Example: `  attache policy check --policy ./policies
  attache policy check --policy https://policy.example/effective --scope acme`,
		Args: noArguments,
	}
	flags := config.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := config.Load(c.Process, flags, nil)
		if err != nil {
			return err
		}
		source, err := assembly.ConfiguredSource(c.Process, s)
		if err != nil {
			return err
		}
		if s.Policy.Dir != "" {
			if err := c.checkFiles(s.Policy.Dir); err != nil {
				return err
			}
			fmt.Fprintln(c.Stdout, "ok:", s.Policy.Dir)
			return nil
		}
		return c.checkEndpoint(cmd.Context(), s, source)
	}
	return cmd
}

// checkFiles prints the problems of the policy files in dir. The error says only
// that there are some.
func (c *program) checkFiles(dir string) error {
	var err error
	for _, p := range filesource.Check(dir) {
		fmt.Fprintln(c.Stdout, p)
		if !p.Warning {
			err = cli.ExitError(cli.ExitUsage)
		}
	}
	return err
}

// checkEndpoint asks an endpoint once, which is all that can be known of it.
func (c *program) checkEndpoint(ctx context.Context, s *config.Settings, source policy.Source) error {
	e, q, err := c.ask(ctx, s, source)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Stdout, "ok: %s has %d policies and %d objectives for scope %q\n",
		s.Policy.URL, len(e.Policies), len(e.Objectives), q.Scope)
	return err
}
