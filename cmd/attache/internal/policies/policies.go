// Package policies prints the policies that a session would get, and the mistakes in policy files.
package policies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
)

// A Command shows or checks the policies of a configuration.
type Command struct {
	cli.Process
	Settings *config.Settings
}

// Show prints the block of policies that a session would get.
func (c Command) Show(ctx context.Context) error {
	source, err := assembly.SessionSource(c.Process, c.Settings, logging.New(c.Process, c.Settings, c.Stderr))
	if err != nil {
		return err
	}
	e, _, err := c.ask(ctx, source)
	if err != nil {
		return err
	}
	c.reportHidden(e)
	block := policy.Render(e, c.Settings.Briefing.MaxBytes)
	if term.HasColour(c.Getenv, c.Stdout) {
		block = term.PaintBlock(block)
	}
	_, err = fmt.Fprintln(c.Stdout, block)
	return err
}

// Check prints the mistakes in the policy files, or queries the endpoint once.
func (c Command) Check(ctx context.Context) error {
	source, err := assembly.ConfiguredSource(c.Process, c.Settings)
	if err != nil {
		return err
	}
	dir := c.Settings.Policy.Dir
	if dir == "" {
		e, q, err := c.ask(ctx, source)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.Stdout, "ok: %s has %s for scope %q\n", config.ShownAddress(c.Settings.Policy.URL), assembly.PolicyCounts(e), q.Scope)
		return err
	}
	if err := checkFiles(c.Stdout, dir); err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Stdout, "ok:", dir)
	return err
}

// reportHidden prints warnings about policies with invisible characters.
func (c Command) reportHidden(e policy.Effective) {
	show := func(what, text string) {
		if shown, hidden := policy.Escape(text); hidden > 0 {
			fmt.Fprintf(c.Stderr, "attache: %s has %s that cannot be seen; the block leaves them out: %s\n", what, cli.Plural(hidden, "character"), strings.ReplaceAll(shown, "\n", " "))
		}
	}
	for i, p := range e.Policies {
		show(fmt.Sprintf("policy %d", i+1), p.Name+": "+p.Text)
	}
	for i, o := range e.Objectives {
		show(fmt.Sprintf("objective %d", i+1), o)
	}
}

// ask makes the query of a session. The error says what to do.
func (c Command) ask(ctx context.Context, source policy.Source) (policy.Effective, policy.Query, error) {
	q, err := assembly.PolicyQuery(ctx, c.Process, c.Settings)
	if err != nil {
		return policy.Effective{}, q, err
	}
	e, err := source.Effective(ctx, q)
	if err != nil {
		err = c.explain(q, err)
	}
	return e, q, err
}

// explain returns an error that says what to do about err, an error of the source.
func (c Command) explain(q policy.Query, err error) error {
	s := c.Settings
	switch {
	case errors.Is(err, policy.ErrUnknownScope):
		return c.unknownScope(q, err)
	case errors.Is(err, policy.ErrInvalid) && s.Policy.Dir != "":
		if checked := checkFiles(c.Stderr, s.Policy.Dir); checked != nil {
			return checked
		}
	case s.Policy.Dir != "":
		return cli.Usagef("%v", err)
	case errors.Is(err, policy.ErrUnauthorized):
		return fmt.Errorf("%w: give a key it knows in ATTACHE_API_KEY, or its token with policy.token_env", err)
	}
	return err
}

// unknownScope returns the error for an unknown scope, with the scopes that exist.
func (c Command) unknownScope(q policy.Query, err error) error {
	s := c.Settings
	if s.Policy.Dir == "" {
		return cli.Usagef("%v", err)
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

// checkFiles writes the problems in the policy files in dir to out. If any is not a warning, it returns
// an error without a message.
func checkFiles(out io.Writer, dir string) error {
	var err error
	for _, p := range filesource.Check(dir) {
		fmt.Fprintln(out, p)
		if !p.Warning {
			err = cli.ExitError(cli.ExitUsage)
		}
	}
	return err
}
