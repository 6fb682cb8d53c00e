package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/filecheck"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/proxy/child"
)

// clients checks the configuration files of clients: the user's, and those of the project in the working
// directory.
func (d *Doctor) clients() {
	d.check = "clients"
	here, _ := os.Getwd()
	found := false
	for _, f := range mcpclient.ThisSystem(d.Getenv).Files(here) {
		found = d.clientFile(f) || found
	}
	d.unused()
	if !found {
		d.note("add a server in your client, then \"attache wrap --all\"; or name a file with \"attache wrap --file\"",
			"no configuration file of a client has servers in it")
	}
}

// unused reports the entries of servers without a match that apply to no wrapped server. The name may be the
// client's for the server, or misspelled.
func (d *Doctor) unused() {
	var entries []string
	for _, e := range d.Settings.Servers {
		if e.ByName() && !slices.Contains(d.wrapped, e.Name) {
			entries = append(entries, fmt.Sprintf("servers.%s (%v)", e.Name, e.From))
		}
	}
	if len(d.Server) > 0 || len(d.wrapped) == 0 || len(entries) == 0 {
		return
	}
	slices.Sort(d.wrapped)
	d.note("nothing, if it is for a server elsewhere; or add a match to the entry, by package, command or url",
		"no server of your clients has the name of %s; their names are %s",
		strings.Join(entries, ", "), strings.Join(slices.Compact(d.wrapped), ", "))
}

// clientFile checks one file, and reports whether it has servers or cannot be read.
func (d *Doctor) clientFile(f mcpclient.File) bool {
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
	steps := map[*clientconfig.Entry]clientconfig.Step{}
	l := clientconfig.ThisProgram()
	for _, step := range doc.Wrap(l, func(string) bool { return true }).Steps {
		steps[step.Entry] = step
	}
	remote, skipped := 0, 0
	for _, e := range doc.Entries {
		_, wrapped := e.Wrapped(l)
		switch {
		case e.Remote && !steps[e].Done:
			remote++
			d.skipped(f, steps[e])
		case wrapped && e.Odd == "" && e.Broken(l):
			d.problem("put \"--\" and the server's command after attache's flags", "%s: the entry %q starts attache without a server", entryPlace(f, e), e.Name)
		case wrapped:
			with = append(with, e.Name)
			d.attacheOf(f, e)
			d.settingsOf(f, e, l)
		case !steps[e].Done:
			if d.skipped(f, steps[e]) {
				skipped++
			}
		default:
			without = append(without, e.Name)
		}
	}
	text := f.Client.Title + ": " + f.Path + ": attache is in front of " + cmp.Or(strings.Join(with, ", "), "no server")
	if remote > 0 {
		text += "; not of " + cli.Plural(remote, "remote server")
	}
	if skipped > 0 {
		text += "; not of " + cli.Plural(skipped, "server") + " named above"
	}
	if len(without) == 0 {
		d.ok("%s", text)
		return true
	}
	d.note("attache wrap --file \""+f.Path+"\", with --dry-run first to see what would change", "%s; not of %s", text, strings.Join(without, ", "))
	return true
}

// entryPlace returns the client, the file and the line of an entry.
func entryPlace(f mcpclient.File, e *clientconfig.Entry) string {
	return fmt.Sprintf("%s: %s, line %d", f.Client.Title, f.Path, e.Line)
}

// skipped reports why wrap skips a server and what to do. It returns false if nothing can be done.
func (d *Doctor) skipped(f mcpclient.File, step clientconfig.Step) bool {
	at := strings.LastIndex(step.Text, ": ")
	if at >= 0 {
		d.note(step.Text[at+2:], "%s: attache is not in front of %q: %s", entryPlace(f, step.Entry), step.Entry.Name, step.Text[:at])
	}
	return at >= 0
}

// settingsOf reports problems with the settings of the attache in an entry, which come from its arguments and
// variables. It does not repeat problems of doctor's own settings.
func (d *Doctor) settingsOf(f mcpclient.File, e *clientconfig.Entry, l clientconfig.Launch) {
	process := d.Process
	process.Env = slices.DeleteFunc(slices.Concat(e.Env(), process.Env), func(entry string) bool {
		return strings.Contains(entry, "=$") || strings.Contains(entry, "={env:") || strings.Contains(entry, "={file:") // opencode
	})
	command := e.Behind(l)
	if e.IsTeams() {
		command = []string{clientconfig.TeamsServer}
	}
	s, err := config.LoadEntry(process, e.Own(l), command)
	if err == nil {
		d.wrapped = append(d.wrapped, s.Server.Name)
		err = filecheck.All(process, s)
	}
	if err == nil && e.IsTeams() && !s.Teams.Enabled {
		d.warn("set teams.enabled: true, or remove the entry",
			"%s: the entry %q starts attache teams, and teams are off", entryPlace(f, e), e.Name)
	}
	problems, _ := errors.AsType[setting.Problems](err)
	for _, p := range problems {
		if !slices.ContainsFunc(d.Findings, func(known finding) bool { return known.Text == cli.Elided(p.String()) }) {
			d.problem("correct it there; flags of attache are changed by unwrap, then wrap", "%s: the attache in front of %q: %v", entryPlace(f, e), e.Name, p)
		}
	}
}

// attacheOf reports an entry whose program, attache or npx, does not exist. A name is only a warning,
// because the client may have another search path. Variables and relative paths are the client's.
func (d *Doctor) attacheOf(f mcpclient.File, e *clientconfig.Entry) {
	if !filepath.IsAbs(e.Command) {
		if strings.ContainsAny(e.Command, `/\$%`) || hasPath(e.Env()) {
			return
		}
		if _, err := child.Find(child.Options{Argv: []string{e.Command}, Env: d.Env}); err != nil {
			d.warn("install it where the client finds it, or unwrap, then wrap with --command",
				"%s: the server %q starts %s, which is not in the search path", entryPlace(f, e), e.Name, e.Command)
		}
		return
	}
	if _, err := os.Stat(e.Command); errors.Is(err, fs.ErrNotExist) {
		d.problem("attache wrap --repair --file \""+f.Path+"\"",
			"%s: the server %q starts %s, which does not exist", entryPlace(f, e), e.Name, e.Command)
	}
}

// hasPath reports whether env sets the search path.
func hasPath(env []string) bool {
	return slices.ContainsFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.EqualFold(name, "PATH")
	})
}
