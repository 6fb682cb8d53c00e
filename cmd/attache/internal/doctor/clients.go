package doctor

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
)

// clients looks for attache in the configuration files of clients: the user's, and
// those of the project in the working directory.
func (d *Doctor) clients() {
	d.check = "clients"
	here, _ := os.Getwd()
	found := false
	for _, f := range clientconfig.ThisSystem(d.Getenv).Files(here) {
		found = d.clientFile(f) || found
	}
	if !found {
		d.note("add a server in your client, then \"attache wrap --all\"; or name a file with \"attache wrap --file\"",
			"no configuration file of a client has servers in it")
	}
}

// clientFile checks one file, and reports whether it has servers or should have.
func (d *Doctor) clientFile(f clientconfig.File) bool {
	doc, err := clientconfig.Open(f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		d.warn("correct the file; the client may not read it either", "%s: %s: %v", f.Client.Title, f.Path, err)
		return true
	case len(doc.Entries) == 0:
		return false
	}
	for _, text := range doc.Warnings {
		d.warn("correct the file", "%s: %s: %s", f.Client.Title, f.Path, text)
	}
	var with, without []string
	wraps := map[*clientconfig.Entry]bool{}
	l := clientconfig.ThisProgram()
	for _, step := range doc.Wrap(l, func(string) bool { return true }).Steps {
		wraps[step.Entry] = step.Done
	}
	remote := 0
	for _, e := range doc.Entries {
		_, wrapped := e.Wrapped(l)
		switch {
		case e.Remote && !wraps[e]:
			remote++
		case wrapped && e.Odd == "" && e.Broken(l):
			d.problem("put \"--\" and the server's command behind attache's flags", "%s: %s, line %d: the entry %q starts attache without a server", f.Client.Title, f.Path, e.Line, e.Name)
		case wrapped:
			with = append(with, e.Name)
			d.attacheOf(f, e)
		case e.Odd == "":
			without = append(without, e.Name)
		}
	}
	text := f.Client.Title + ": " + f.Path + ": attache is in front of " + cmp.Or(strings.Join(with, ", "), "none")
	if remote > 0 {
		text += "; not of " + cli.Plural(remote, "remote server")
	}
	if len(without) == 0 {
		d.ok("%s", text)
		return true
	}
	d.note("attache wrap --file \""+f.Path+"\", with --dry-run first to see what would change", "%s; not of %s", text, strings.Join(without, ", "))
	return true
}

// attacheOf reports an entry whose attache program does not exist.
func (d *Doctor) attacheOf(f clientconfig.File, e *clientconfig.Entry) {
	if !filepath.IsAbs(e.Command) {
		return
	}
	if _, err := os.Stat(e.Command); errors.Is(err, fs.ErrNotExist) {
		d.problem("attache wrap --repair --file \""+f.Path+"\"",
			"%s: %s, line %d: the server %q starts %s, which is not there", f.Client.Title, f.Path, e.Line, e.Name, e.Command)
	}
}
