package main

import (
	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
)

const trustHelp = `Trust the policies of a workspace, in its file .attache/policy.yaml: from
the next session on they are in the briefing of sessions in that workspace, beside
those of the policy source. PATH is the workspace, or the file.

The file is text from a repository. Without trust nothing of it is used. Trust is
for this path and this text: when the file changes it is untrusted again, and a
session there logs that. The trusted text is shown; --show shows the file and trusts
nothing.

The exit status is 1 if there is no such file or it cannot be read, and 2 for a
mistake in the file or in the flags.`

func (c *program) trustCommand() *cobra.Command {
	var show, list bool
	cmd := &cobra.Command{
		Use:   "trust (PATH [--show] | --list)",
		Short: "Use a workspace's own policy file, as it is now",
		Long:  trustHelp,
		Example: `  attache trust --show .     look at the policies of this workspace
  attache trust .            use them
  attache trust --list       what is trusted`,
		Args: func(cmd *cobra.Command, args []string) error {
			if list {
				return noArguments(cmd, args)
			}
			return onePath(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := c.trust()
			switch {
			case err != nil:
				return err
			case list:
				return t.List()
			case show:
				return t.Show(args[0])
			}
			return t.Trust(args[0])
		},
	}
	cmd.Flags().BoolVar(&show, "show", false, "show the file as it is, and trust nothing")
	cmd.Flags().BoolVar(&list, "list", false, "list what is trusted")
	return cmd
}

func (c *program) untrustCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "untrust PATH",
		Short:   "Stop using a workspace's own policy file",
		Long:    "Forget that the policy file of the workspace PATH is trusted. The workspace need not\nexist any more. The exit status is 1 if it was not trusted.",
		Example: "  attache untrust .",
		Args:    onePath,
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := c.trust()
			if err != nil {
				return err
			}
			return t.Untrust(args[0])
		},
	}
}

// onePath requires one argument, a path.
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

func (c *program) trust() (trust.Command, error) {
	t := trust.Command{Store: assembly.TrustStore(c.Process), Stdout: c.Stdout, Stderr: c.Stderr}
	if t.Store.Dir == "" {
		return t, cli.Usagef("the user's state directory is not known: set %s, or XDG_STATE_HOME", mcpclient.HomeVariable())
	}
	return t, nil
}
