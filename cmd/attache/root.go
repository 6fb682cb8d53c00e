package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/session"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/proxy/remote"
)

// A program is one run of attache.
type program struct {
	cli.Process
	// dashed is true if there was a "--", and server is the command after it. cobra sees
	// neither, because it would search them for flags and subcommands.
	dashed bool
	server []string
	// out is stdout for all commands but a session, which writes to stdout itself.
	out *term.Output
}

// run runs the program and returns the exit status.
func run(ctx context.Context, p cli.Process) int {
	c := &program{Process: p, out: &term.Output{To: p.Stdout}}
	args := c.split(p.Args)
	if slices.Equal(args, []string{"--version"}) {
		args = []string{"version"} // most programs have this flag
	}
	root := c.rootCommand(args)
	root.SetArgs(args)
	root.SetIn(p.Stdin)
	root.SetOut(c.out)
	root.SetErr(p.Stderr)
	err := root.ExecuteContext(ctx)
	return c.exitStatus(cmp.Or(err, c.out.Failed))
}

// split removes the server's command from args and stores it. It does not split a request for
// shell completion, whose arguments are words of an unfinished line.
func (c *program) split(args []string) []string {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return args
	}
	head := args
	if at := slices.Index(args, "--"); at >= 0 {
		c.dashed, c.server, head = true, args[at+1:], args[:at]
	}
	return append([]string{}, head...) // not nil: cobra would read os.Args
}

func (c *program) exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if status, ok := errors.AsType[cli.ExitError](err); ok {
		return int(status)
	}
	if mistakes, ok := errors.AsType[setting.Problems](err); ok {
		for _, m := range mistakes {
			fmt.Fprintln(c.Stderr, "attache:", m)
		}
		return cli.ExitUsage
	}
	fmt.Fprintln(c.Stderr, "attache:", cli.Printable(err.Error(), '\n', '\t')) // it may have text from a server
	if _, ok := errors.AsType[cli.UsageError](err); ok {
		return cli.ExitUsage
	}
	return cli.ExitFailure
}

// rootCommand returns the command tree. If args need no subcommand, it has only the root.
func (c *program) rootCommand(args []string) *cobra.Command {
	root := c.forServer(&cobra.Command{
		Use:     "attache",
		Short:   "Carry the session's context to any MCP server",
		Long:    rootHelp,
		Example: rootExamples,
	})
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentPreRunE = c.prepare
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(usage)
	if c.dashed && flagsAlone(args) {
		return root
	}
	wrapRun := c.forServer(&cobra.Command{
		Use:   "run",
		Short: "Wrap a stdio server; the same as attache without a subcommand",
		Long: `Wrap a stdio server: start the command after "--" when the client's first message comes, and
carry messages both ways until one of them ends. It is what clients start, and the same as
attache without a subcommand.`,
		Example: `  attache run --workspace /src/app -- npx -y @cyanheads/git-mcp-server
  attache run --trust sandboxed --stdout-noise forward -- my-server --stdio`,
	})
	root.SetHelpCommand(helpCommand())
	root.AddCommand(wrapRun)
	root.AddCommand(c.subcommands()...)
	root.AddCommand(c.buildCommands()...)
	return root
}

// flagsAlone reports whether args are only flags of the root command, as when a client starts
// attache.
func flagsAlone(args []string) bool {
	if len(args) == 0 {
		return true
	}
	root := &cobra.Command{}
	config.AddFlags(root)
	root.Flags().SetInterspersed(false)
	return root.ParseFlags(args) == nil && root.Flags().NArg() == 0
}

// forServer makes cmd a command that wraps a server.
func (c *program) forServer(cmd *cobra.Command) *cobra.Command {
	flags := config.AddFlags(cmd)
	// Without this, flags of a server without "--" would be parsed as ours.
	cmd.Flags().SetInterspersed(false)
	cmd.DisableFlagsInUseLine = true
	cmd.Annotations = map[string]string{takesServer: "yes"}
	cmd.Args = c.checkServer
	return c.withSettings(cmd, flags, func(ctx context.Context, s *config.Settings, _ []string) error {
		server := s.CommandOr(c.server)
		if len(server) == 0 {
			return cli.Usagef("no server to wrap: give its command or its address after \"--\", as in \"%s -- npx -y @cyanheads/git-mcp-server\"; \"attache demo\" shows attache at work, \"attache --help\" lists everything", cmd.CommandPath())
		}
		p, sink := logging.Share(c.Process)
		defer sink.Close()
		log := logging.New(c.Process, s, sink)
		load := func() (*config.Settings, error) { return config.Load(c.Process, flags, c.server) }
		return cli.ExitWith(session.Run(ctx, session.Options{Process: p, Settings: s, Load: load, Version: ownVersion(), Log: log}, server))
	})
}

// prepare refuses a server's command for a subcommand that takes none. It makes subcommands print
// to out.
func (c *program) prepare(cmd *cobra.Command, _ []string) error {
	if c.dashed && cmd.Annotations[takesServer] == "" && cmd.Annotations[mayTakeServer] == "" {
		return cli.Usagef("%q does not wrap a server: leave out \"--\" and what follows, or see \"%s --help\"",
			cmd.CommandPath(), cmd.CommandPath())
	}
	if cmd.Annotations[takesServer] == "" {
		c.Stdout = c.out
	}
	return nil
}

func (c *program) checkServer(cmd *cobra.Command, args []string) error {
	path := cmd.CommandPath()
	switch {
	case len(args) > 0:
		return c.strayArgument(cmd, args)
	case !c.dashed: // server.url may name a server
		return nil
	case len(c.server) == 0:
		return cli.Usagef("nothing after \"--\": give the server's command there, as in \"%s -- npx -y @cyanheads/git-mcp-server\"", path)
	}
	return c.checkCommand(path)
}

// checkCommand checks the command or address after "--". path is the command before it, such as "attache".
func (c *program) checkCommand(path string) error {
	switch {
	case config.IsURL(c.server):
		return c.checkAddress()
	case c.server[0] == "":
		return cli.Usagef("the server's command is empty: give a program after \"--\"; was it a variable that is not set?")
	case strings.HasPrefix(c.server[0], "-"):
		return cli.Usagef("%q after \"--\" is not a program: write attache's flags before \"--\", and the server's command after it", c.server[0])
	case len(c.server) == 1 && config.LacksScheme(c.server[0]):
		return cli.Usagef("there is no program %q: write the address of a remote server with its scheme, as in \"%s -- https://%s\"", c.server[0], path, c.server[0])
	}
	return nil
}

func (c *program) checkAddress() error {
	if err := remote.CheckURL(c.server[0]); err != nil {
		return cli.Usagef("the server's address %v", err)
	}
	if len(c.server) > 1 {
		return cli.Usagef("%q follows the server's address: write only the address after \"--\"; set headers in server.headers", c.server[1])
	}
	return nil
}

// strayArgument returns an error for arguments that are not flags: a misspelt
// subcommand, or a server without "--".
func (c *program) strayArgument(cmd *cobra.Command, args []string) error {
	if near := cli.Nearest(args[0], subcommandNames(cmd)); near != "" {
		return cli.Usagef("unknown command %q: did you mean \"%s %s\"? a server's command goes after \"--\"", args[0], cmd.CommandPath(), near)
	}
	line := strings.Join(append([]string{cmd.CommandPath(), "--"}, args...), " ")
	if c.dashed {
		return cli.Usagef("unexpected %q before \"--\": only attache's flags go there; see \"attache --help\"", args[0])
	}
	return cli.Usagef("unknown command %q: a server's command goes after \"--\", as in %q; \"attache --help\" lists attache's own", args[0], line)
}

// flagError adds advice to an error of the flag library.
func flagError(cmd *cobra.Command, err error) error {
	help := cmd.CommandPath() + " --help"
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case errors.As(err, &unknown):
		return unknownFlag(cmd, unknown)
	case errors.As(err, &bare):
		return cli.Usagef("--%s needs a value: see %q", bare.GetFlag().Name, help)
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "bool":
		return cli.Usagef("--%s: %q is neither true nor false: write one of the two", invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &invalid) && errors.As(err, &number):
		return cli.Usagef("--%s %q: write a whole number from 0 on", invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &invalid):
		return cli.Usagef("--%s %q: %v: see %q", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap(), help)
	}
	return cli.Usagef("%v: see %q", err, help)
}

// unknownFlag returns an error that suggests the flag that was probably meant.
func unknownFlag(cmd *cobra.Command, e *pflag.NotExistError) error {
	flag := "--" + e.GetSpecifiedName()
	if short := e.GetSpecifiedShortnames(); short != "" {
		flag = "-" + short
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	advice, end := fmt.Sprintf("see \"%s --help\"", cmd.CommandPath()), ";"
	if near := cli.Nearest(e.GetSpecifiedName(), names); near != "" && e.GetSpecifiedShortnames() == "" {
		advice, end = fmt.Sprintf("did you mean --%s?", near), ""
	}
	if cmd.Annotations[takesServer]+cmd.Annotations[mayTakeServer] != "" {
		advice += end + " flags of the server go after \"--\""
	}
	return cli.Usagef("unknown flag %s: %s", flag, advice)
}
