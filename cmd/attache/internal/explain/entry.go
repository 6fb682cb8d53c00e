package explain

import (
	"cmp"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// useEntry uses the settings and the server of an entry of servers, whatever its match, as attache serve
// does without a command.
func (e *Explainer) useEntry() error {
	if e.Dashed {
		return cli.Usagef("--server and a server after \"--\" are both given: give one of them")
	}
	s, err := config.LoadServed(e.Process, e.Flags, e.Entry)
	if err != nil {
		return err
	}
	if names := config.ServedServers(s); !slices.Contains(names, e.Entry) {
		return cli.Usagef("--server %s: servers has no entry of that name with a command or URL: write %s", e.Entry, cmp.Or(cli.Quoted(names), "one"))
	}
	e.Server, e.Dashed = slices.Clone(s.CommandOr(s.Server.Command)), true
	s.Log, s.DryRun = e.Settings.Log, false
	e.Settings = config.Inert(s)
	return nil
}
