package clientconfig

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Package is attache's name in the npm registry, as entries started by npx have
// it.
const Package = "attache-mcp"

// A Launch is how a client starts attache.
type Launch struct {
	// Command is the program, a path or a name.
	Command string
	// Args start attache where Command is another program: those of npx. They
	// stand in front of Flags.
	Args []string
	// Flags are attache's own, in front of the "--".
	Flags []string
}

// ThisProgram returns the launch that recognises the entries which start the running attache,
// whatever its file is called.
func ThisProgram() Launch {
	path, err := os.Executable()
	if err != nil {
		return Launch{} // those of the usual names are recognised
	}
	return Launch{Command: path}
}

// A Plan is what is to be done to a file. Nothing is written.
type Plan struct {
	// Content is the file as it is to be. It is the very slice that was read if
	// nothing changes.
	Content []byte
	// Steps say of each entry what is done, or why nothing is.
	Steps []Step

	old     []byte
	splices []splice
	secrets []span
}

// A Step is what a plan does to one entry.
type Step struct {
	Entry *Entry
	// Done says that the entry is changed.
	Done bool
	// Broken says that the entry starts attache without a server.
	Broken bool
	// Text says why it is not, or what a person should know of the change.
	Text string
}

// Changed reports whether p changes anything.
func (p *Plan) Changed() bool { return len(p.splices) > 0 }

// Wrap plans to put attache, started as l says, in front of the servers that are
// chosen.
func (d *Document) Wrap(l Launch, chosen func(name string) bool) *Plan {
	return d.plan(chosen, func(e *Entry) ([]splice, string) {
		if why := d.unwrappable(e, l); why != "" {
			return nil, why
		}
		switch {
		case e.Remote && e.toml != nil:
			return d.wrapTOML(e.toml, l), e.remote.advice()
		case e.Remote:
			return d.wrapRemote(e, l), e.remote.advice()
		}
		return d.wrap(e, l), ""
	})
}

// Unwrap plans to take attache out from in front of the servers that are chosen.
// l is how Wrap was told to start it, so that a name of its own is known.
func (d *Document) Unwrap(l Launch, chosen func(name string) bool) *Plan {
	return d.planWrapped(l, chosen, func(e *Entry, dashes int) ([]splice, string) {
		switch isRemote := isHTTP(e.Args[dashes+1]); {
		case isRemote && e.toml != nil:
			edits, why := d.unwrapTOML(e, dashes)
			return edits, cmp.Or(why, lost(withoutBearer(e.Args[:dashes]), l))
		case isRemote:
			edits, why := d.unwrapRemote(e, dashes)
			return edits, cmp.Or(why, lost(e.Args[:dashes], l))
		}
		return d.unwrap(e, dashes), lost(e.Args[:dashes], l)
	})
}

// Repair plans to start attache as l says in the chosen entries that start it
// already. The flags of attache, the "--" and the server stay as they are.
func (d *Document) Repair(l Launch, chosen func(name string) bool) *Plan {
	return d.planWrapped(l, chosen, func(e *Entry, dashes int) ([]splice, string) {
		launcher := e.launcher(l, dashes)
		if e.Command == l.Command && slices.Equal(e.Args[:launcher], l.Args) {
			return nil, "it starts this attache already"
		}
		return d.relaunch(e, l, launcher), ""
	})
}

// planWrapped makes the plan of edit for the chosen entries that attache is in front of.
// The argument with the index dashes is the "--".
func (d *Document) planWrapped(l Launch, chosen func(string) bool, edit func(e *Entry, dashes int) ([]splice, string)) *Plan {
	return d.plan(chosen, func(e *Entry) ([]splice, string) {
		dashes, wrapped := e.Wrapped(l)
		switch {
		case !wrapped:
			return nil, "attache is not in front of it"
		case e.Odd != "":
			return nil, e.Odd
		case e.Broken(l):
			return nil, noServer
		}
		return edit(e, dashes)
	})
}

// noServer says what is wrong with an entry that is [Entry.Broken].
const noServer = `it starts attache without a server: put "--" and the server's command behind attache's flags`

// Bare returns data, the content of file, with attache taken out from in front of
// all servers, as Unwrap does it; nil if something would be lost by that.
func Bare(file File, data []byte, l Launch) []byte {
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

// plan makes the plan of edit for the entries that are chosen.
func (d *Document) plan(chosen func(string) bool, edit func(*Entry) ([]splice, string)) *Plan {
	p := &Plan{Content: d.data, old: d.data, secrets: slices.Clone(d.secrets)}
	for _, e := range d.Entries {
		if !chosen(e.Name) || e.IsTeams() {
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

// unwrappable says why attache is not put in front of e, empty if it is.
func (d *Document) unwrappable(e *Entry, l Launch) string {
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
	case strings.HasPrefix(e.Command, "~"):
		return "its command begins with ~, which clients expand in the command and not in its arguments: write the path out"
	case len(e.Args) == 0 && holdsArguments(e.Command):
		return "its command holds its arguments: write them into args"
	}
	return ""
}

// Wrapped reports whether e starts attache, and which of its arguments is the
// "--" behind which the server stands, -1 if none is. l is how it might be
// started, beside the usual ways.
func (e *Entry) Wrapped(l Launch) (dashes int, wrapped bool) {
	if e.command.to == 0 {
		return -1, false
	}
	dashes = slices.Index(e.Args, "--")
	own := e.Args
	if dashes >= 0 {
		own = e.Args[:dashes]
	}
	program := e.Command
	if baseName(program) == "cmd" && len(own) > 1 && strings.EqualFold(own[0], "/c") {
		program, own = own[1], own[2:]
	}
	switch {
	case baseName(program) == "attache":
		return dashes, true
	case dashes < 0:
		return -1, e.IsTeams()
	}
	asTold := l.Command != "" && program == l.Command && len(own) >= len(l.Args) && slices.Equal(own[:len(l.Args)], l.Args) // flags of attache follow
	return dashes, asTold || slices.ContainsFunc(own, isPackage)
}

// Own returns attache's own arguments in e, a wrapped entry: those behind what starts attache and
// in front of the "--"; nil if it has none or wraps no server. l is as for [Entry.Wrapped].
func (e *Entry) Own(l Launch) []string {
	dashes, wrapped := e.Wrapped(l)
	if !wrapped || dashes < 0 || e.IsTeams() {
		return nil
	}
	return e.Args[e.launcher(l, dashes):dashes]
}

// Behind returns the server that e, a wrapped entry, has behind the "--": its command, or its
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
	if e.toml != nil {
		for i, name := range e.toml.env.keys {
			all = append(all, name.value+"="+e.toml.env.texts[i])
		}
		return all
	}
	if e.remote == nil {
		return nil
	}
	for _, v := range e.remote.variables {
		all = append(all, v.key.value+"="+v.value.value)
	}
	return all
}

// Broken reports whether e starts attache with no server behind a "--". Such an
// entry ends with a usage error at every start. l is as for [Entry.Wrapped].
func (e *Entry) Broken(l Launch) bool {
	dashes, wrapped := e.Wrapped(l)
	return wrapped && !e.IsTeams() && (dashes < 0 || dashes+1 >= len(e.Args) || e.Args[dashes+1] == "")
}

// launcher returns how many arguments of e, a wrapped entry, start attache and are
// not its own. The argument with the index dashes is the "--".
func (e *Entry) launcher(l Launch, dashes int) int {
	own := e.Args[:dashes]
	if at := slices.IndexFunc(own, isPackage); at >= 0 && baseName(e.Command) != "attache" {
		return at + 1
	}
	switch {
	case baseName(e.Command) == "cmd":
		return 2 // cmd /c attache
	case e.Command == l.Command && len(own) >= len(l.Args) && slices.Equal(own[:len(l.Args)], l.Args):
		return len(l.Args)
	}
	return 0
}

// isPackage reports whether arg names attache's package, in any version.
func isPackage(arg string) bool {
	return arg == Package || strings.HasPrefix(arg, Package+"@")
}

// baseName returns the name of a program without its directory and what Windows
// ends it with. Files of Windows are read on other systems too.
func baseName(program string) string {
	name := strings.ToLower(program[strings.LastIndexAny(program, `/\`)+1:])
	for _, end := range []string{".exe", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// wrap returns the edits that put attache in front of e.
func (d *Document) wrap(e *Entry, l Launch) []splice {
	items := quoteAll(slices.Concat(l.Args, l.Flags, []string{"--"}))
	items = append(items, d.raw(e.command.span))
	return []splice{{e.command.span, quote(l.Command)}, d.prepend(e, items)}
}

// relaunch returns the edits that have e start attache as l says. The first
// arguments, as many as launcher says, are those that start it now.
func (d *Document) relaunch(e *Entry, l Launch, launcher int) []splice {
	edits := []splice{{e.command.span, quote(l.Command)}}
	if launcher == 0 {
		if len(l.Args) > 0 {
			edits = append(edits, d.prepend(e, quoteAll(l.Args)))
		}
		return edits
	}
	gone := e.args.items[:launcher]
	at := span{gone[0].from, e.args.items[launcher].from}
	text := comments(d.data, at, gone)
	for _, arg := range l.Args {
		text += quote(arg) + ", "
	}
	return append(edits, splice{at, text})
}

// quoteAll quotes each of args.
func quoteAll(args []string) []string {
	var quoted []string
	for _, arg := range args {
		quoted = append(quoted, quote(arg))
	}
	return quoted
}

// prepend returns the edit that puts items in front of the arguments of e.
func (d *Document) prepend(e *Entry, items []string) splice {
	switch {
	case e.args == nil:
		return splice{span{e.newArgs.at, e.newArgs.at}, e.newArgs.text(items)}
	case len(e.args.items) == 0:
		at := e.args.from + 1
		return splice{span{at, at}, strings.Join(items, ", ")}
	}
	gap := e.args.lead
	if gap == "" {
		gap = " "
	}
	at := e.args.items[0].from
	return splice{span{at, at}, strings.Join(items, ","+gap) + "," + gap}
}

// unwrap returns the edits that take attache out from in front of e. The argument
// with the index dashes is the "--".
func (d *Document) unwrap(e *Entry, dashes int) []splice {
	command := e.args.items[dashes+1]
	edits := []splice{{e.command.span, d.raw(command.span)}}
	if added, ok := d.added(e); ok {
		return append(edits, splice{added, ""})
	}
	gone := e.args.items[:dashes+2]
	rest := d.emptied(e, gone)
	if dashes+2 < len(e.args.items) {
		rest = span{gone[0].from, e.args.items[dashes+2].from}
	}
	return append(edits, splice{rest, comments(d.data, rest, gone)})
}

// emptied returns what goes when all arguments of e do.
func (d *Document) emptied(e *Entry, gone []literal) span {
	inside := span{e.args.from + 1, e.args.to - 1}
	behind := d.raw(span{gone[len(gone)-1].to, inside.to})
	switch {
	case gone[0].from > inside.from:
		return inside // as Wrap does not leave it: somebody has spaced the list anew
	case withoutComma(behind) != behind:
		return inside // a comma behind the last item must not be left alone
	}
	return span{inside.from, gone[len(gone)-1].to}
}

// added returns where the arguments of e stand if they are written as those of an
// entry that had none.
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

// lost says which of attache's own arguments an entry loses, beside those that
// started it.
func lost(own []string, l Launch) string {
	flags := slices.DeleteFunc(slices.Clone(own), func(arg string) bool {
		return arg == "-y" || arg == "--yes" || strings.EqualFold(arg, "/c") || baseName(arg) == "npx" || isPackage(arg) || slices.Contains(l.Args, arg)
	})
	if len(flags) == 0 {
		return ""
	}
	return fmt.Sprintf("attache's own %d arguments are taken out with it", len(flags))
}

// raw returns what is written in at.
func (d *Document) raw(at span) string { return string(d.data[at.from:at.to]) }
