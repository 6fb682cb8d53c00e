package wrap

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// ClientNames returns the names of the clients on the command line.
func ClientNames() []string {
	var names []string
	for _, c := range mcpclient.All() {
		names = append(names, c.Name)
	}
	return names
}

// targets returns the files that the flags select.
func (j *Job) targets() ([]mcpclient.File, error) {
	clients, err := j.chosenClients()
	switch {
	case err != nil:
		return nil, err
	case j.All && len(clients) > 0:
		return nil, cli.Usagef("--all is every client: leave out --client, or --all")
	case len(j.Files) > 0:
		return j.namedFiles(clients)
	case j.Project == "" && mcpclient.ThisSystem(j.Getenv).Home == "":
		return nil, cli.Usagef("the home directory is not known: set %s, or name a file with --file", mcpclient.HomeVariable())
	case len(clients) == 0 && !j.All && j.Project == "":
		return nil, j.askForClient()
	}
	var files []mcpclient.File
	var places []string
	found := false
	for _, f := range j.clientFiles(clients) {
		places = append(places, cli.Printable(f.Path))
		if _, err := os.Lstat(f.Path); err != nil {
			continue
		}
		found = true
		if d, err := clientconfig.Open(f); err != nil || len(d.Entries) > 0 {
			files = append(files, f)
		}
	}
	switch {
	case !found:
		return nil, fmt.Errorf("found no configuration file of a client: looked for %s; name another with --file", strings.Join(places, ", "))
	case files == nil:
		return nil, errors.New("no servers are in the clients' configuration files: add one in the client first")
	}
	return files, nil
}

// namedFiles returns the files given with --file. If --client is given too, they are files of that
// client.
func (j *Job) namedFiles(clients []mcpclient.Client) ([]mcpclient.File, error) {
	if len(clients) > 1 || j.All || j.Project != "" {
		return nil, cli.Usagef("--file names the files: leave out --all and --project, and give --client at most once")
	}
	var files []mcpclient.File
	for _, path := range j.Files {
		if path == "" {
			return nil, cli.Usagef("--file: the file's name is empty: was it a variable that is not set?")
		}
		f := mcpclient.File{Path: path}
		if len(clients) == 1 {
			f.Client = &clients[0]
		}
		files = append(files, f)
	}
	return files, nil
}

func (j *Job) chosenClients() ([]mcpclient.Client, error) {
	var chosen []mcpclient.Client
	for _, name := range j.Clients {
		if _, err := setting.OneOf(name, ClientNames()); err != nil {
			return nil, cli.Usagef("--client: %v; or name its file with --file", err)
		}
		all := mcpclient.All()
		i := slices.IndexFunc(all, func(c mcpclient.Client) bool { return c.Name == name })
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// clientFiles returns the files of the clients, or of all known clients if clients is nil.
func (j *Job) clientFiles(clients []mcpclient.Client) []mcpclient.File {
	if clients == nil {
		clients = mcpclient.All()
	}
	system := mcpclient.ThisSystem(j.Getenv)
	var files []mcpclient.File
	for i := range clients {
		if j.Project != "" {
			files = append(files, system.ProjectFiles(&clients[i], j.Project)...)
		} else {
			files = append(files, system.UserFiles(&clients[i])...)
		}
	}
	return files
}

// askForClient returns an error that asks for a client and lists those that have servers.
func (j *Job) askForClient() error {
	word := "wrap"
	if j.Unwrap {
		word = "unwrap"
	}
	var found []string
	for _, f := range j.clientFiles(nil) {
		if d, err := clientconfig.Open(f); err == nil && len(d.Entries) > 0 {
			found = append(found, fmt.Sprintf("%s (%s)", f.Client.Name, cli.Plural(len(d.Entries), "server")))
		}
	}
	if found == nil {
		return cli.Usagef("which file? no client's file with servers was found: name one with --file, or a project with --project")
	}
	return cli.Usagef("which client? found %s: name one as in \"attache %s --client %s\", or all with \"attache %s --all\"; --dry-run shows what would change",
		strings.Join(found, ", "), word, strings.Fields(found[0])[0], word)
}
