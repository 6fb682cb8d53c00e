package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
)

// policyCommand looks at the policies.
func (c *cli) policyCommand() *cobra.Command {
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

// tokenMissing says that the endpoint's token is to come from a variable that is
// not set; nil if it is, or need not be.
func (c *cli) tokenMissing(s *Settings) error {
	name := s.Policy.TokenEnv
	if s.Policy.URL == "" || name == "" || c.getenv(name) != "" {
		return nil
	}
	var p Problems
	p.add(s.Origin("policy.token_env"), "policy.token_env: the variable %s is not set: set it to the token, or leave policy.token_env out", name)
	return p
}

// policyShow prints the block that a session would be given.
func (c *cli) policyShow() *cobra.Command {
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
	flags := addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := loadSettings(c.process, flags)
		if err != nil {
			return err
		}
		source, err := c.sessionSource(s)
		if err != nil {
			return err
		}
		e, _, err := c.ask(cmd.Context(), s, source)
		if err != nil {
			return err
		}
		c.showHidden(e)
		block := policy.Render(e, s.Briefing.MaxBytes)
		if c.colours(c.Stdout) {
			block = paintBlock(block)
		}
		_, err = fmt.Fprintln(c.Stdout, block)
		return err
	}
	return cmd
}

// showHidden tells of policies with characters that cannot be seen, and shows them.
func (c *cli) showHidden(e policy.Effective) {
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

// wantSource returns the configured source; that there is none is an error.
func (c *cli) wantSource(s *Settings) (policy.Source, error) {
	if err := c.tokenMissing(s); err != nil {
		return nil, err
	}
	source, _, err := policySource(c.process, s, &layers{})
	if err == nil && source == nil {
		err = usagef("no policies are configured: give a directory or an address with --policy, or policy.dir or policy.url in the configuration")
	}
	return source, err
}

// sessionSource returns what a session asks: the configured source with the
// policies of trusted workspaces, or those alone.
func (c *cli) sessionSource(s *Settings) (policy.Source, error) {
	var next policy.Source
	own := s.Policy.Dir == "" && s.Policy.URL == "" && c.trusted().Any()
	if !own {
		var err error
		if next, err = c.wantSource(s); err != nil {
			return nil, err
		}
	}
	if t := trustedSource(c.process, s, next, newLogger(c.process, s, c.Stderr)); t != nil {
		return t, nil
	}
	return next, nil
}

// ask asks source what a session would. The error says what to do.
func (c *cli) ask(ctx context.Context, s *Settings, source policy.Source) (policy.Effective, policy.Query, error) {
	q, err := c.query(ctx, s)
	if err != nil {
		return policy.Effective{}, q, err
	}
	e, err := source.Effective(ctx, q)
	if err != nil {
		err = c.explainSource(s, q, err)
	}
	return e, q, err
}

// query is what a session of the given key, or of the operator's scope, asks.
func (c *cli) query(ctx context.Context, s *Settings) (policy.Query, error) {
	base := baseContext(c.process, s)
	q := policy.Query{Scope: s.Policy.Scope, Workspace: s.Session.WorkspaceID, WorkspacePath: base.Workspace.Value}
	who, err := newCaller(c.process, s, heldKeys{})
	if err != nil {
		return q, err
	}
	if who.own.text != nil {
		own, _ := who.own.text() // Identify says why not
		q.Credential = policy.Credential(onlyKey(own))
	}
	principal, err := who.Identify(ctx, capture.Credential{})
	switch {
	case err == nil && principal != nil:
		q.Scope = cmp.Or(principal.Scope, q.Scope)
	case err == nil, s.Policy.URL != "": // the endpoint judges the key; it need not be one of ours
	case who.own.text == nil:
		return q, usagef("%v", err)
	default:
		return q, usagef("%s: %v", who.own.from, err)
	}
	return q, nil
}

// explainSource says what to do about an error of the source.
func (c *cli) explainSource(s *Settings, q policy.Query, err error) error {
	switch {
	case errors.Is(err, policy.ErrUnknownScope):
		return c.unknownScope(s, q, err)
	case errors.Is(err, policy.ErrInvalid) && s.Policy.Dir != "":
		if checked := c.checkFiles(s.Policy.Dir); checked != nil {
			return checked
		}
	case s.Policy.Dir != "":
		return usagef("%v", err)
	case errors.Is(err, policy.ErrUnauthorized):
		return fmt.Errorf("%w: give a key it knows in ATTACHE_API_KEY, or its token by policy.token_env", err)
	}
	return err
}

// unknownScope names the scopes there are.
func (c *cli) unknownScope(s *Settings, q policy.Query, err error) error {
	if s.Policy.Dir == "" {
		return usagef("%v: correct --scope or policy.scope", err)
	}
	scopes, _ := filesource.Load(s.Policy.Dir)
	names := slices.Sorted(maps.Keys(scopes))
	switch near := nearest(q.Scope, names); {
	case len(names) == 0:
		return usagef("there is no policy file in %s: write one, or correct --policy", s.Policy.Dir)
	case q.Scope == "":
		return usagef("no scope is given: give one of %s with --scope, or in policy.scope", quoted(names))
	case near != "":
		return usagef("there is no scope %q: did you mean %q?", q.Scope, near)
	}
	return usagef("there is no scope %q in %s: give one of %s with --scope, or in policy.scope", q.Scope, s.Policy.Dir, quoted(names))
}

// policyCheck finds the mistakes in policies.
func (c *cli) policyCheck() *cobra.Command {
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
	flags := addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := loadSettings(c.process, flags)
		if err != nil {
			return err
		}
		source, err := c.wantSource(s)
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
func (c *cli) checkFiles(dir string) error {
	var err error
	for _, p := range filesource.Check(dir) {
		fmt.Fprintln(c.Stdout, p)
		if !p.Warning {
			err = exitError(exitUsage)
		}
	}
	return err
}

// checkEndpoint asks an endpoint once, which is all that can be known of it.
func (c *cli) checkEndpoint(ctx context.Context, s *Settings, source policy.Source) error {
	e, q, err := c.ask(ctx, s, source)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Stdout, "ok: %s has %d policies and %d objectives for scope %q\n",
		s.Policy.URL, len(e.Policies), len(e.Objectives), q.Scope)
	return err
}
