package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
)

const trustHelp = `Trust the policies that a workspace has of its own, in .attache/policy.yaml: from
the next session on they are in the briefing of sessions in that workspace, beside
those of the policy source. PATH is the workspace, or the file.

The file is text from a repository. Without trust nothing of it is used. Trust is
for this path and this text: when the file changes it is untrusted again, and a
session there says so. What is trusted is shown; --show shows the file and trusts
nothing.

The exit status is 1 if there is no such file or it cannot be read, and 2 for a
mistake in the file or in the flags.`

// A trustJob is one run of trust.
type trustJob struct {
	*program
	show, list bool
}

// trustCommand allows a workspace's own policy file.
func (c *program) trustCommand() *cobra.Command {
	j := &trustJob{program: c}
	cmd := &cobra.Command{
		Use:   "trust (PATH [--show] | --list)",
		Short: "Use a workspace's own policy file, as it is now",
		Long:  trustHelp,
		Example: `  attache trust --show .     look at the policies of this workspace
  attache trust .            use them
  attache trust --list       what is trusted`,
		Args: func(cmd *cobra.Command, args []string) error {
			if j.list {
				return noArguments(cmd, args)
			}
			return onePath(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := c.wantStore()
			switch {
			case err != nil:
				return err
			case j.list:
				return j.printList(store)
			}
			return j.trust(store, args[0])
		},
	}
	cmd.Flags().BoolVar(&j.show, "show", false, "show the file as it is, and trust nothing")
	cmd.Flags().BoolVar(&j.list, "list", false, "list what is trusted")
	return cmd
}

// untrustCommand forgets what trust has allowed.
func (c *program) untrustCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "untrust PATH",
		Short:   "Use a workspace's own policy file no more",
		Long:    "Forget that the policy file of the workspace PATH is trusted. The workspace need not\nexist any more. The exit status is 1 if it was not trusted.",
		Example: "  attache untrust .",
		Args:    onePath,
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := c.wantStore()
			if err != nil {
				return err
			}
			found, err := store.Untrust(args[0])
			switch {
			case err != nil:
				return fmt.Errorf("%w: correct the permissions of %s", err, store.Dir)
			case !found:
				return fmt.Errorf("%s was not trusted: \"attache trust --list\" shows what is", shownPath(args[0]))
			}
			_, err = fmt.Fprintf(c.Stdout, "untrusted: %s; sessions that have had its policies keep them\n", shownPath(args[0]))
			return err
		},
	}
}

// onePath wants one argument, a path.
func onePath(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return cli.Usagef("which workspace? give its path, as in \"%s .\"", cmd.CommandPath())
	case len(args) > 1:
		return cli.Usagef("unexpected %q: give one path", args[1])
	case args[0] == "":
		return cli.Usagef("the path is empty: was it a variable that is not set?")
	}
	return nil
}

// wantStore returns where trust is kept.
func (c *program) wantStore() (trust.Store, error) {
	store := assembly.TrustStore(c.Process)
	if store.Dir == "" {
		return store, cli.Usagef("it is not known where the user's state belongs: set %s, or XDG_STATE_HOME", clientconfig.HomeVariable())
	}
	return store, nil
}

// trust shows the policies in the workspace that path names, and trusts them.
func (j *trustJob) trust(store trust.Store, path string) error {
	workspace, real, text, err := workspacePolicies(path)
	if err != nil {
		return err
	}
	file := filepath.Join(workspace, filepath.FromSlash(trust.File))
	if j.show {
		return j.showText(store, workspace, text)
	}
	e, problems := filesource.ParseLoose(file, text)
	bad := false
	for _, p := range problems {
		fmt.Fprintln(j.Stdout, strings.Map(cli.Printable, p.String()))
		bad = bad || !p.Warning
	}
	switch {
	case bad:
		return cli.Usagef("nothing was trusted: correct the file first")
	case e.Empty():
		return cli.Usagef("%s has no policies and no objectives: write one first", shownPath(file))
	}
	if err := store.Trust(workspace, real, text, time.Now()); err != nil {
		return fmt.Errorf("%w: correct the permissions of %s", err, store.Dir)
	}
	if _, hidden := policy.Escape(lineFeeds(text)); hidden > 0 {
		fmt.Fprintf(j.Stderr, "attache: %s\n", hiddenNote(hidden))
	}
	_, err = fmt.Fprintf(j.Stdout, "%s\n\ntrusted: %s, as it is now (%s); from the next session on\n",
		policy.Render(e, 0), shownPath(file), policy.Digest(string(text)))
	return err
}

// workspacePolicies returns the text of the policy file of the workspace that path
// names, and where that is.
func workspacePolicies(path string) (workspace, real string, text []byte, err error) {
	workspace, real, err = trust.Resolve(path)
	if err == nil {
		text, err = trust.Read(real)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("there is no %s in %s: give the workspace that has one", trust.File, shownPath(workspace))
	case err != nil:
		err = fmt.Errorf("%s in %s cannot be read: %w", trust.File, shownPath(workspace), cli.Unreadable(err))
	}
	return workspace, real, text, err
}

// showText prints the file itself, what cannot be seen escaped, and whether it is
// trusted.
func (j *trustJob) showText(store trust.Store, workspace string, text []byte) error {
	shown, hidden := policy.Escape(lineFeeds(text))
	fmt.Fprintln(j.Stdout, strings.TrimRight(shown, "\n"))
	if hidden > 0 {
		fmt.Fprintf(j.Stderr, "attache: %s\n", hiddenNote(hidden))
	}
	_, err := fmt.Fprintf(j.Stderr, "attache: %s\n", trustState(store, workspace, text))
	return err
}

// lineFeeds returns text with the line ends of Unix.
func lineFeeds(text []byte) string { return strings.ReplaceAll(string(text), "\r\n", "\n") }

// hiddenNote says that a policy text has characters that cannot be seen.
func hiddenNote(n int) string {
	return fmt.Sprintf("the text has %d characters that cannot be seen (--show writes them as <U+...>); the briefing leaves them out: ask who wrote them, and why", n)
}

// trustState says whether text is trusted in a workspace, and what to do.
func trustState(store trust.Store, workspace string, text []byte) string {
	word := shownPath(workspace)
	switch r, known := store.Find(workspace); {
	case !known:
		return fmt.Sprintf("the policies of %s are not trusted: \"attache trust\" with that path uses them", word)
	case r.Digest != policy.Digest(string(text)):
		return fmt.Sprintf("the policies of %s have changed since they were trusted on %s, and are not used: \"attache trust\" with that path trusts them again", word, r.Trusted.Format(time.DateOnly))
	}
	return fmt.Sprintf("the policies of %s are trusted: \"attache untrust\" with that path ends it", word)
}

// printList prints what is trusted, and what has become of it.
func (j *trustJob) printList(store trust.Store) error {
	all, err := store.All()
	if err != nil {
		return fmt.Errorf("%w: correct the permissions of %s", err, store.Dir)
	}
	if len(all) == 0 {
		fmt.Fprintln(j.Stderr, "attache: nothing is trusted; \"attache trust PATH\" trusts a workspace's policies")
	}
	for _, r := range all {
		state := "trusted"
		switch text, err := trust.Read(r.Real); {
		case errors.Is(err, fs.ErrNotExist):
			state = "gone"
		case err != nil:
			state = "unreadable"
		case policy.Digest(string(text)) != r.Digest:
			state = "changed"
		}
		fmt.Fprintf(j.Stdout, "%-10s  %s  %s\n", state, r.Trusted.Format(time.DateOnly), shownPath(r.Workspace))
	}
	return nil
}

// shownPath is a path for people, without what could move a cursor.
func shownPath(path string) string { return strings.Map(cli.Printable, path) }
