package clientconfig

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// TeamsServer is the name of attache's own server in a configuration.
const TeamsServer = "attache-teams"

// codexVariables lists the variables that Codex must pass to the server, because it gives servers a
// nearly empty environment. They identify a session that another one started, and locate the
// configuration and the registry.
const codexVariables = `env_vars = ["ATTACHE_SESSION_ID", "ATTACHE_SESSION_PROOF", "ATTACHE_PARENT_SESSION_ID", "ATTACHE_TRUST_LEVEL", "ATTACHE_WORKSPACE_PATH", "ATTACHE_WORKSPACE_ID", "XDG_CONFIG_HOME", "XDG_STATE_HOME"]`

// IsTeams reports whether e starts attache's own server and wraps no other. The program may also be
// called attache-SUFFIX, as a second attache is.
func (e *Entry) IsTeams() bool {
	if e.Name == TeamsServer && slices.Contains(e.Args, teamsCommand) {
		return true
	}
	program, own := e.withoutCmd(e.Args)
	at := 0
	if name := baseName(program); name != "attache" && !strings.HasPrefix(name, "attache-") {
		if at = starter(own); at == 0 {
			return false
		}
	}
	return at < len(own) && own[at] == teamsCommand
}

// isOwnTeams reports whether e, an entry for attache's own server, starts this attache: in a usual way, or as l says.
// It returns false if the entry starts another attache.
func (e *Entry) isOwnTeams(l Launch) bool {
	program, own := e.withoutCmd(e.Args[:slices.Index(e.Args, teamsCommand)])
	return baseName(program) == "attache" || l.starts(program, own) || starter(own) > 0
}

// AddTeams extends p to add attache's own server before the first server of each list that lacks it.
// RemoveTeams undoes this. If the new file could not be read, such as a TOML file with all servers
// in one value, the server is not added, and a step of the plan says so.
func (d *Document) AddTeams(p *Plan, file mcpclient.File, l Launch) {
	before := *p
	before.splices = slices.Clone(p.splices)
	d.addTeams(p, file, l)
	if _, err := Read(file, p.Content); err != nil {
		*p = before
		p.Steps = append(p.Steps, Step{Entry: &Entry{Name: TeamsServer}, Text: "the file has no room for another server: give each server a table of its own, then wrap it again"})
	}
}

func (d *Document) addTeams(p *Plan, file mcpclient.File, l Launch) {
	isTeams := func(e *Entry) bool { return e.IsTeams() || e.Name == TeamsServer }
	if file.IsTOML() {
		if end := len(d.data); len(d.Entries) > 0 && !slices.ContainsFunc(d.Entries, isTeams) {
			d.extend(p, splice{span{end, end}, tomlTeams(l.Command, l.teams())}, nil)
		}
		return
	}
	first := map[string]*Entry{}
	for _, e := range d.Entries {
		if isTeams(e) || first[e.Project] == nil {
			first[e.Project] = e
		}
	}
	for _, e := range d.Entries {
		if first[e.Project] != e || isTeams(e) {
			continue
		}
		before := d.data[:e.offset]
		gap := string(before[len(bytes.TrimRight(before, " \t\r\n")):])
		text := quote(TeamsServer) + ": " + d.teamsEntry(e, l) + "," + cmp.Or(gap, " ")
		d.extend(p, splice{span{e.offset, e.offset}, text}, e)
	}
}

func (l Launch) teams() []string { return slices.Concat(l.Args, []string{teamsCommand}, l.Flags) }

// teamsEntry returns the entry of attache's own server in a JSON file, in the form of its neighbour near.
func (d *Document) teamsEntry(near *Entry, l Launch) string {
	args := "[" + strings.Join(quoteAll(l.teams()), ", ") + "]"
	switch {
	case d.inList(near):
		return `{"type": "local", "command": [` + quote(l.Command) + ", " + args[1:] + "}"
	case d.client == nil && near.remote != nil && near.remote.kind.exists():
		return `{"type": "stdio", "command": ` + quote(l.Command) + `, "args": ` + args + "}"
	}
	return `{"command": ` + quote(l.Command) + `, "args": ` + args + "}"
}

// extend adds an edit of attache's own server to a plan. near is a nearby entry, or nil.
func (d *Document) extend(p *Plan, s splice, near *Entry) {
	own := &Entry{Name: TeamsServer, offset: s.from}
	if near != nil {
		own.Project, own.Line = near.Project, near.Line
	}
	p.splices = append(p.splices, s)
	slices.SortStableFunc(p.splices, func(a, b splice) int { return a.from - b.from })
	p.Content = apply(d.data, p.splices)
	p.Steps = append(p.Steps, Step{Entry: own, Done: true})
}

// tomlTeams returns the table of attache's own server, to write at the end of a file.
func tomlTeams(command string, args []string) string {
	return "\n[mcp_servers." + TeamsServer + "]\ncommand = " + quote(command) + "\nargs = [" + strings.Join(quoteAll(args), ", ") + "]\n" + codexVariables + "\n"
}

// RemoveTeams extends p to remove attache's own server.
func (d *Document) RemoveTeams(p *Plan, file mcpclient.File) {
	kept := -1 // the list of the last entry before this one that is kept
	for _, e := range d.Entries {
		if !e.IsTeams() {
			kept = e.list
			continue
		}
		at, ok := span{}, false
		if file.IsTOML() {
			text := tomlTeams(e.Command, e.Args)
			from := bytes.Index(d.data, []byte(text))
			at, ok = span{from, from + len(text)}, from >= 0
			if ok && at.to < len(d.data) && from > 0 && d.data[from-1] != '\n' {
				at.from++ // the table was added to a file without a final line break, and something else after it
			}
		} else {
			at, ok = d.jsonTeams(e, kept == e.list)
		}
		if !ok {
			kept = e.list
			p.Steps = append(p.Steps, Step{Entry: e, Text: "it was edited since attache wrote it: remove it by hand"})
			continue
		}
		d.extend(p, splice{at, ""}, e)
	}
}

// jsonTeams returns the span of e, the entry of attache's own server, with the comma that separates
// it from the previous one, or from the next one if no entry before it is kept. The order of the
// entries may have changed since AddTeams. It returns false if there is a comment next to the entry,
// or a trailing comma.
func (d *Document) jsonTeams(e *Entry, kept bool) (span, bool) {
	between := func(from, to int) string { return strings.TrimSpace(string(d.data[from:to])) }
	switch {
	case kept:
		return span{e.previous, e.end}, between(e.previous, e.offset) == ","
	case e.next > 0:
		return span{e.offset, e.next}, between(e.end, e.next) == ","
	}
	rest := bytes.TrimSpace(d.data[e.end:])
	return span{e.offset, e.end}, bytes.HasPrefix(rest, []byte("}"))
}
