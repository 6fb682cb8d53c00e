// Package overview shows how a user uses attache: the wrapped servers of clients, the logins to remote
// servers, and the running processes.
package overview

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/cmd/attache/internal/status"
)

// A Report is the output of "attache status --json".
type Report struct {
	Clients []Client        `json:"clients"`
	Logins  []Login         `json:"logins"`
	Running []status.Report `json:"running"`
}

// A Client lists the servers in one file of a client.
type Client struct {
	Client  string   `json:"client"`
	File    string   `json:"file"`
	Wrapped []string `json:"wrapped"`
	Others  []string `json:"not_wrapped"`
	Remote  []string `json:"remote"`
}

// A Login is a login to a remote server.
type Login struct {
	Server  string    `json:"server"`
	Issuer  string    `json:"issuer"`
	Scopes  []string  `json:"scopes"`
	Expires time.Time `json:"expires,omitzero"`
	Renews  bool      `json:"renews"`
	Usable  bool      `json:"usable"`

	text string
}

// New returns the report for the user of p.
func New(p cli.Process, now time.Time) (*Report, error) {
	running, err := status.Running(status.Dirs(p)...)
	if err != nil {
		return nil, fmt.Errorf("the list of running attaches cannot be read: %w", err)
	}
	return &Report{Clients: clients(p), Logins: logins(p, now), Running: append([]status.Report{}, running...)}, nil
}

// clients reads the files of all clients: the user's, and those of the project in the working directory.
func clients(p cli.Process) []Client {
	all := []Client{}
	here, _ := os.Getwd()
	for _, f := range mcpclient.ThisSystem(p.Getenv).Files(here) {
		if d, err := clientconfig.Open(f); err == nil && len(d.Entries) > 0 {
			all = append(all, newClient(f, d))
		}
	}
	return all
}

func newClient(f mcpclient.File, d *clientconfig.Document) Client {
	c := Client{Client: f.Client.Title, File: f.Path, Wrapped: []string{}, Others: []string{}, Remote: []string{}}
	l := clientconfig.ThisProgram()
	for _, e := range d.Entries {
		_, wrapped := e.Wrapped(l)
		switch {
		case e.Remote:
			c.Remote = append(c.Remote, e.Name)
		case wrapped && !e.Broken(l):
			c.Wrapped = append(c.Wrapped, e.Name)
		default:
			c.Others = append(c.Others, e.Name)
		}
	}
	return c
}

func logins(p cli.Process, now time.Time) []Login {
	all := []Login{}
	for _, g := range remoteserver.Logins(p).All() {
		server := config.ShownAddress(g.URL)
		all = append(all, Login{server, g.Issuer, append([]string{}, g.Scopes...), g.Expires, g.CanRenew, g.Usable(now), server + g.Describe(now)})
	}
	slices.SortFunc(all, func(a, b Login) int { return strings.Compare(a.Server, b.Server) })
	return all
}

// Text returns the report for people.
func (r *Report) Text(now time.Time) string {
	var b strings.Builder
	b.WriteString("clients\n")
	for _, c := range r.Clients {
		fmt.Fprintf(&b, "  %s: %s\n", c.Client, cli.Printable(c.File))
		for _, group := range []struct {
			title string
			names []string
		}{{"wrapped", c.Wrapped}, {"not wrapped", c.Others}, {"remote", c.Remote}} {
			if len(group.names) > 0 {
				fmt.Fprintf(&b, "    %-12s %s\n", group.title, cli.Printable(strings.Join(group.names, ", ")))
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
		fmt.Fprintf(&b, "  %s\n", cli.Printable(l.text))
	}
	b.WriteString("running\n")
	for _, s := range r.Running {
		s.Write(&b, now)
	}
	if len(r.Running) == 0 {
		b.WriteString("  no attache runs in front of a server\n  (one is shown a second after its client's first message)\n")
	}
	return b.String()
}
