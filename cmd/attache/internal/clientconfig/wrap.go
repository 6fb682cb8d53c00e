package clientconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// A Plan holds the changes to a file. Making a plan writes nothing.
type Plan struct {
	// Content is the new content. It is the same slice that was read if nothing changes.
	Content []byte
	// Steps give for each entry what changes, or why nothing does.
	Steps []Step

	old     []byte
	splices []splice
	secrets []span
}

// A Step is what a plan does to one entry.
type Step struct {
	Entry *Entry
	// Done is true if the entry changes.
	Done bool
	// Broken is true if the entry starts attache without a server.
	Broken bool
	// Text is the reason if it does not change, or a note about the change for the user.
	Text string
}

// Changed reports whether p changes anything.
func (p *Plan) Changed() bool { return len(p.splices) > 0 }

// Wrap plans to put attache in front of the chosen servers. l is how clients will start it.
func (d *Document) Wrap(l Launch, chosen func(name string) bool) *Plan {
	return d.plan(servers(chosen), func(e *Entry) ([]splice, string) {
		if why := d.wrapProblem(e, l); why != "" {
			return nil, why
		}
		switch {
		case !e.Remote:
			return e.wrapCommand(d, l), ""
		case e.toml != nil:
			return e.wrapRemoteTOML(d, l), e.remote.advice(d.client)
		}
		return e.wrapRemoteJSON(d, l), e.remote.advice(d.client)
	})
}

// Unwrap plans to remove attache from the entries of the chosen servers. l is the launch that Wrap
// used; it is needed if attache has another name.
func (d *Document) Unwrap(l Launch, chosen func(name string) bool) *Plan {
	return d.planWrapped(l, servers(chosen), func(e *Entry, dashes int) (edits []splice, why string) {
		own := e.Own(l)
		switch {
		case !isHTTP(e.Args[dashes+1]):
			edits = e.unwrapCommand(d, dashes)
		case e.toml != nil:
			edits, why = e.unwrapRemoteTOML(d, dashes)
			own = withoutBearer(own)
		default:
			edits, why = e.unwrapRemoteJSON(d, dashes)
		}
		switch {
		case why != "" || len(own) == 0:
		case len(own) == 1:
			why = "attache's own argument is taken out with it"
		default:
			why = fmt.Sprintf("attache's own %d arguments are taken out with it", len(own))
		}
		return edits, why
	})
}

// Repair plans to change the chosen entries that already start attache so that they start it as in
// l, and attache's own server too. The flags of attache, the "--" and the server stay the same.
func (d *Document) Repair(l Launch, chosen func(name string) bool) *Plan {
	repaired := func(e *Entry) bool { return chosen(e.Name) && (!e.IsTeams() || e.isOwnTeams(l)) }
	return d.planWrapped(l, repaired, func(e *Entry, end int) ([]splice, string) {
		launcher := e.launcher(l, end)
		if e.Command == l.Command && slices.Equal(e.Args[:launcher], l.Args) {
			return nil, "it starts this attache already"
		}
		return d.relaunch(e, l, launcher), ""
	})
}

// servers returns a function that reports whether an entry is chosen and is not attache's own server.
func servers(chosen func(name string) bool) func(*Entry) bool {
	return func(e *Entry) bool { return chosen(e.Name) && !e.IsTeams() }
}

// planWrapped plans edit for the chosen entries that start attache. end is the index of the argument "--", or, of
// attache's own server, of its command.
func (d *Document) planWrapped(l Launch, chosen func(*Entry) bool, edit func(e *Entry, end int) ([]splice, string)) *Plan {
	return d.plan(chosen, func(e *Entry) ([]splice, string) {
		end, wrapped := e.Wrapped(l)
		if e.IsTeams() {
			end = slices.Index(e.Args, teamsCommand)
		}
		switch {
		case !wrapped:
			return nil, "attache is not in front of it"
		case e.Odd != "":
			return nil, e.Odd
		case e.Broken(l):
			return nil, noServer
		}
		return edit(e, end)
	})
}

// noServer is the text for an entry that is [Entry.Broken].
const noServer = `it starts attache without a server: put "--" and the server's command after attache's flags`

// Bare returns data, the content of file, after unwrapping all servers. It returns nil if that would
// lose something.
func Bare(file mcpclient.File, data []byte, l Launch) []byte {
	d, err := Read(file, data)
	if err != nil {
		return nil
	}
	plan := d.Unwrap(l, func(string) bool { return true })
	d.RemoveTeams(plan, file)
	for _, step := range plan.Steps {
		if step.Done && step.Text != "" {
			return nil
		}
	}
	return plan.Content
}

// plan plans edit for the chosen entries. edit returns the splices and the text of a step.
func (d *Document) plan(chosen func(*Entry) bool, edit func(*Entry) ([]splice, string)) *Plan {
	p := &Plan{Content: d.data, old: d.data, secrets: slices.Clone(d.secrets)}
	for _, e := range d.Entries {
		if !chosen(e) {
			continue
		}
		splices, text := edit(e)
		p.splices = append(p.splices, splices...)
		p.Steps = append(p.Steps, Step{Entry: e, Done: splices != nil, Broken: text == noServer, Text: text})
	}
	if p.Changed() {
		slices.SortStableFunc(p.splices, func(a, b splice) int { return a.from - b.from })
		p.Content = apply(d.data, p.splices)
	}
	return p
}

// wrapProblem returns the reason why e cannot be wrapped, or "".
func (d *Document) wrapProblem(e *Entry, l Launch) string {
	_, wrapped := e.Wrapped(l)
	switch {
	case wrapped && e.Odd == "" && e.Broken(l):
		return noServer
	case wrapped && len(l.Flags) > 0:
		return "attache is in front of it already and keeps the flags it has: unwrap it first to give it others"
	case wrapped:
		return "attache is in front of it already"
	case e.Odd != "":
		return e.Odd
	case e.Remote:
		return cmp.Or(e.remote.problem(d.client), e.toml.problem())
	case e.listed && !d.inList(e):
		return "its command is a list, which the client does not read: write the program as command, and the rest as args"
	case isHTTP(e.Command):
		return "its command is an address: write it as url if the server is remote"
	case strings.HasPrefix(e.Command, "~"):
		return "its command begins with ~, which clients expand in the command and not in its arguments: write the path out"
	case len(e.Args) == 0 && holdsArguments(e.Command):
		return "its command holds its arguments: write them into args"
	}
	return ""
}

// Own returns attache's own arguments in a wrapped entry e: those between the arguments that start
// attache and the "--". For attache's own server it returns those after its command, and
// nil for other entries. l is as for [Entry.Wrapped].
func (e *Entry) Own(l Launch) []string {
	dashes, wrapped := e.Wrapped(l)
	switch {
	case e.IsTeams():
		return e.Args[slices.Index(e.Args, teamsCommand)+1:]
	case !wrapped || dashes < 0:
		return nil
	}
	return e.Args[e.launcher(l, dashes):dashes]
}

// Behind returns the arguments after the "--" of a wrapped entry e: the server's command, or its
// address.
func (e *Entry) Behind(l Launch) []string {
	dashes, wrapped := e.Wrapped(l)
	if !wrapped || dashes < 0 {
		return nil
	}
	return e.Args[dashes+1:]
}

// Env returns the variables that the client sets for e, as "NAME=value".
func (e *Entry) Env() (all []string) {
	if e.remote == nil {
		return nil
	}
	for _, v := range e.remote.variables {
		all = append(all, v.key.value+"="+v.value.value)
	}
	return all
}

// Broken reports whether e starts attache without a server after a "--". attache then exits with a
// usage error. l is as for [Entry.Wrapped].
func (e *Entry) Broken(l Launch) bool {
	dashes, wrapped := e.Wrapped(l)
	return wrapped && !e.IsTeams() && (dashes < 0 || dashes+1 >= len(e.Args) || e.Args[dashes+1] == "")
}

// wrapCommand returns the edits that put attache in front of the command of e.
func (e *Entry) wrapCommand(d *Document, l Launch) []splice {
	items := quoteAll(slices.Concat(l.Args, l.Flags, []string{"--"}))
	if e.listed {
		return []splice{insert(e.command.from, e.args.lead, append([]string{quote(l.Command)}, items...))}
	}
	items = append(items, d.raw(e.command.span))
	return []splice{{e.command.span, quote(l.Command)}, d.prepend(e, items)}
}

// relaunch returns the edits that make e start attache as in l. launcher is the number of arguments
// that start it now.
func (d *Document) relaunch(e *Entry, l Launch, launcher int) []splice {
	edits := []splice{{e.command.span, quote(l.Command)}}
	if launcher == 0 {
		if len(l.Args) > 0 {
			edits = append(edits, d.prepend(e, quoteAll(l.Args)))
		}
		return edits
	}
	removed := e.args.items[:launcher]
	at := span{removed[0].from, e.args.items[launcher].from}
	text := comments(d.data, at, removed)
	for _, arg := range l.Args {
		text += quote(arg) + ", "
	}
	return append(edits, splice{at, text})
}

// prepend returns the edit that inserts items before the arguments of e.
func (d *Document) prepend(e *Entry, items []string) splice {
	switch {
	case e.args == nil:
		return splice{span{e.newArgs.at, e.newArgs.at}, e.newArgs.text(items)}
	case len(e.args.items) == 0:
		at := e.args.from + 1
		return splice{span{at, at}, strings.Join(items, ", ")}
	}
	return insert(e.args.items[0].from, e.args.lead, items)
}

// insert returns the edit that inserts items before another one. lead is that of the list.
func insert(at int, lead string, items []string) splice {
	gap := cmp.Or(lead, " ")
	return splice{span{at, at}, strings.Join(items, ","+gap) + "," + gap}
}

// inList reports whether the client of e has commands with their arguments in one list, as opencode.
func (d *Document) inList(e *Entry) bool {
	if d.client != nil {
		return d.client.Name == "opencode" || d.client.Name == "kilo"
	}
	return e.listed || e.remote != nil && e.remote.kind.value.value == "remote"
}

// unwrapCommand returns the edits that remove attache from in front of the command of e. dashes is the
// index of the argument "--".
func (e *Entry) unwrapCommand(d *Document, dashes int) []splice {
	command := e.args.items[dashes+1]
	if e.listed {
		at := span{e.command.from, command.from}
		return []splice{{at, comments(d.data, at, append([]literal{e.command}, e.args.items[:dashes+1]...))}}
	}
	edits := []splice{{e.command.span, d.raw(command.span)}}
	removed := e.args.items[:dashes+2]
	if added, ok := d.added(e); ok && len(removed) == len(e.args.items) {
		return append(edits, splice{added, ""})
	}
	rest := d.emptied(e, removed)
	if dashes+2 < len(e.args.items) {
		rest = span{removed[0].from, e.args.items[dashes+2].from}
	}
	return append(edits, splice{rest, comments(d.data, rest, removed)})
}

// emptied returns the part of the list to delete if all items of e.args are removed.
func (d *Document) emptied(e *Entry, removed []literal) span {
	inside := span{e.args.from + 1, e.args.to - 1}
	tail := d.raw(span{removed[len(removed)-1].to, inside.to})
	switch {
	case removed[0].from > inside.from:
		return inside // the white space is not from Wrap
	case withoutComma(tail) != tail:
		return inside // the comma after the last item must go too
	}
	return span{inside.from, removed[len(removed)-1].to}
}

// added returns the span of the arguments of e if they are written as Wrap writes those of an entry
// that had none. Others may write them so, too, with arguments of the server behind attache's.
func (d *Document) added(e *Entry) (span, bool) {
	var items []string
	for _, item := range e.args.items {
		items = append(items, d.raw(item.span))
	}
	text := e.newArgs.text(items)
	at := span{e.newArgs.at, e.newArgs.at + len(text)}
	if e.newArgs.ahead {
		at = span{e.newArgs.at - len(text), e.newArgs.at}
	}
	if at.from < 0 || at.to > len(d.data) || e.args.from < at.from || e.args.to > at.to {
		return span{}, false
	}
	return at, string(d.data[at.from:at.to]) == text
}

func (d *Document) raw(at span) string { return string(d.data[at.from:at.to]) }
