package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// LoadEntry returns the settings of an attache that a client starts with the arguments args for the
// server that command starts. It ignores arguments with a variable of the client, such as
// ${workspaceFolder}, and their flags, because the value of the variable is not known. It also
// ignores files that the configuration includes from an address: the entry may be part of a
// repository, and inspecting it must not open a connection.
func LoadEntry(p cli.Process, args, command []string) (*Settings, error) {
	cmd := &cobra.Command{}
	flags := AddFlags(cmd)
	plain := withoutVariables(args)
	if len(plain) > 0 && plain[0] == "run" {
		plain = plain[1:]
	}
	err := cmd.ParseFlags(plain)
	if err == nil && cmd.Flags().NArg() > 0 {
		err = fmt.Errorf("unexpected %q before \"--\": only attache's flags go there", cmd.Flags().Arg(0))
	}
	if err != nil {
		return nil, setting.Problems{{Text: err.Error()}}
	}
	return (&loader{Process: p, flags: flags, offline: true}).load(command)
}

// withoutVariables returns args without those that contain a variable of the client: ${NAME}, or $NAME
// of Gemini CLI.
func withoutVariables(args []string) (plain []string) {
	for _, arg := range args {
		last := len(plain) - 1
		switch {
		case !strings.Contains(arg, "${") && !strings.HasPrefix(arg, "$") && !strings.Contains(arg, "=$"):
			plain = append(plain, arg)
		case !strings.HasPrefix(arg, "-") && last >= 0:
			plain = slices.Delete(plain, last, last+1)
		}
	}
	return plain
}
