package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/status"
)

// A statusReport is what "attache status --json" prints.
type statusReport struct {
	Clients []clientReport  `json:"clients"`
	Logins  []loginReport   `json:"logins"`
	Running []status.Report `json:"running"`
}

// A clientReport says which servers in one file of a client are wrapped.
type clientReport struct {
	Client  string   `json:"client"`
	File    string   `json:"file"`
	Wrapped []string `json:"wrapped"`
	Others  []string `json:"not_wrapped"`
	Remote  []string `json:"remote"`
}

// statusCommand shows what attache is in front of and what it does.
func (c *program) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [flags]",
		Short: "Show which servers are wrapped, which attaches run, and what they did",
		Long: `Show the servers in clients' configuration files with attache in front of them and those
without, your logins to remote servers, and each attache of yours that runs: its server, its session, how many calls it
passed, and how often it filled, pinned and refused. Values of arguments are not shown.`,
		Example: `  attache status
  attache status --json`,
		Args: noArguments,
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON instead of text")
	cmd.RunE = func(*cobra.Command, []string) error {
		running, err := status.Running(status.Dir(c.Process))
		if err != nil {
			return fmt.Errorf("what runs cannot be read: %w", err)
		}
		report := statusReport{Clients: c.clientReports(), Logins: c.loginReports(time.Now()), Running: append([]status.Report{}, running...)}
		if *asJSON {
			out := json.NewEncoder(c.Stdout)
			out.SetIndent("", "  ")
			return out.Encode(report)
		}
		_, err = c.Stdout.Write([]byte(report.text(time.Now())))
		return err
	}
	return cmd
}

// clientReports looks at the files of all clients: the user's, and those of the
// project in the working directory.
func (c *program) clientReports() []clientReport {
	reports := []clientReport{}
	here, _ := os.Getwd()
	for _, f := range clientconfig.ThisSystem(c.Getenv).Files(here) {
		if d, err := clientconfig.Open(f); err == nil && len(d.Entries) > 0 {
			reports = append(reports, reportClient(f, d))
		}
	}
	return reports
}

func reportClient(f clientconfig.File, d *clientconfig.Document) clientReport {
	r := clientReport{Client: f.Client.Title, File: f.Path, Wrapped: []string{}, Others: []string{}, Remote: []string{}}
	for _, e := range d.Entries {
		_, wrapped := e.Wrapped(clientconfig.Launch{})
		switch {
		case e.Remote:
			r.Remote = append(r.Remote, e.Name)
		case wrapped && !e.Broken(clientconfig.Launch{}):
			r.Wrapped = append(r.Wrapped, e.Name)
		default:
			r.Others = append(r.Others, e.Name)
		}
	}
	return r
}

// text returns the report for people. now is the time.
func (r *statusReport) text(now time.Time) string {
	var b strings.Builder
	b.WriteString("clients\n")
	for _, c := range r.Clients {
		fmt.Fprintf(&b, "  %s: %s\n", c.Client, strings.Map(cli.Printable, c.File))
		for _, part := range []struct {
			what  string
			names []string
		}{{"wrapped", c.Wrapped}, {"not wrapped", c.Others}, {"remote", c.Remote}} {
			if len(part.names) > 0 {
				fmt.Fprintf(&b, "    %-12s %s\n", part.what, strings.Map(cli.Printable, strings.Join(part.names, ", ")))
			}
		}
	}
	if len(r.Clients) == 0 {
		b.WriteString("  no configuration file of a client has servers in it\n")
	}
	if len(r.Logins) > 0 {
		b.WriteString("logins\n")
	}
	for _, l := range r.Logins {
		fmt.Fprintf(&b, "  %s\n", strings.Map(cli.Printable, l.text))
	}
	b.WriteString("running\n")
	for _, s := range r.Running {
		s.Write(&b, now)
	}
	if len(r.Running) == 0 {
		b.WriteString("  no attache runs in front of a server\n")
	}
	return b.String()
}
