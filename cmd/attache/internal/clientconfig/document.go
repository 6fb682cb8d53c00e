package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// A Document is the content of a client's configuration file, and the servers
// found in it.
type Document struct {
	// Entries are the servers in the order of the file.
	Entries []*Entry
	// Warnings are what a person should know of the file, each with its line.
	Warnings []string

	data    []byte
	client  *Client // nil: not known
	secrets []span  // the values of variables and headers, which are not to be shown
}

// An Entry is one server in a configuration.
type Entry struct {
	// Name is the server's name, and Project, where a file speaks of several,
	// the project it is for.
	Name, Project string
	// Line is where it begins in the file.
	Line int
	// Remote says that the client reaches the server by a URL. It has no
	// command.
	Remote bool
	// Command and Args are what the client starts. Elements of Args that are not
	// text are empty.
	Command string
	Args    []string
	// Odd says why the entry cannot be edited, "" if it can.
	Odd string

	command literal
	args    *list // nil: there are none
	remote  *remoteForm
	toml    *tomlForm // nil in a file of JSON
	newArgs newArgs   // used if args is nil
	offset  int
	// In a file of JSON: where it ends, where the entry before it in the same list ends, and
	// where the one behind it begins; 0 if there is none.
	end, previous, next int
}

// A span is a place in the document.
type span struct{ from, to int }

// A literal is a text and where it is written.
type literal struct {
	span
	value string
}

// A list is a list of arguments and where they are written.
type list struct {
	span
	items []literal // an item that is no text has the value ""
	// lead is the white space with a line break between the bracket and the first
	// item, empty if there is none or a comment stands there.
	lead string
}

// newArgs says how the arguments of an entry that has none are written: as before, the
// list and after, at the offset of the command's value or key.
type newArgs struct {
	before, after string
	// ahead says that they stand ahead of the command's key, and not behind its
	// value.
	ahead bool
	at    int
}

// text returns how the list items, as literals, are written there. There is no
// space behind the commas, which tells them from a list that was there, and
// empty, when they are taken out again.
func (m newArgs) text(items []string) string {
	return m.before + "[" + strings.Join(items, ",") + "]" + m.after
}

// maxServers is how many servers a configuration may have: the time to show a change grows with
// the square of it.
const maxServers = 5_000

// Read finds the servers of file in data, its content. The error says what is
// wrong with the content and where, and nothing of what it holds: there are
// secrets in these files.
func Read(file File, data []byte) (*Document, error) {
	d := &Document{data: data, client: file.Client}
	if err := plain(data); err != nil {
		return nil, err
	}
	var err error
	if strings.EqualFold(filepath.Ext(file.Path), ".toml") {
		err = d.readTOML(file.sections())
	} else {
		err = d.readJSON(file.sections())
	}
	switch ext := strings.ToLower(filepath.Ext(file.Path)); {
	case err != nil && (ext == ".yaml" || ext == ".yml"):
		return nil, errors.New(`it is YAML, and attache edits JSON and TOML alone: put "attache --" in front of the server's command yourself`)
	case err != nil:
		return nil, err
	}
	if len(d.Entries) > maxServers {
		return nil, fmt.Errorf("it has more than %d servers, as no configuration has: name another file", maxServers)
	}
	slices.SortStableFunc(d.Entries, func(a, b *Entry) int { return a.offset - b.offset })
	slices.SortFunc(d.secrets, func(a, b span) int { return a.from - b.from })
	line, at := 1, 0
	for _, e := range d.Entries {
		line += bytes.Count(data[at:e.offset], []byte("\n"))
		e.Line, at = line, e.offset
	}
	d.warnOfTwins()
	return d, nil
}

// sections returns where servers are in f; all known places if the client is not known.
func (f File) sections() []section {
	if f.Client != nil {
		return f.Client.sections
	}
	var all []section
	for _, c := range Clients() {
		for _, s := range c.sections {
			if !slices.ContainsFunc(all, func(o section) bool { return slices.Equal(o, s) }) {
				all = append(all, s)
			}
		}
	}
	return all
}

// mark is the byte order mark some editors of Windows put in front.
const mark = "\xef\xbb\xbf"

// plain returns an error if data is not a text in UTF-8.
func plain(data []byte) error {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		return fmt.Errorf("it is in UTF-16: save it as UTF-8")
	case !utf8.Valid(data):
		lines := bytes.Split(data, []byte("\n"))
		first := slices.IndexFunc(lines, func(line []byte) bool { return !utf8.Valid(line) })
		return fmt.Errorf("line %d: a byte that is not UTF-8: correct it, or save the file as UTF-8", first+1)
	}
	return nil
}

// lineAt returns the number of the line that contains offset.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}

// warnOfTwins adds a warning for servers with the same name: clients take one of them, most the
// last, and do not say so.
func (d *Document) warnOfTwins() {
	type name struct{ project, name string }
	seen := map[name]*Entry{}
	for _, e := range d.Entries {
		key := name{e.Project, e.Name}
		if first := seen[key]; first != nil {
			d.Warnings = append(d.Warnings, fmt.Sprintf("%q is there twice, in lines %d and %d: most clients take the last; both are treated alike, remove one",
				e.Name, first.Line, e.Line))
		}
		seen[key] = e
	}
}

// classify sets what kind of server e is.
func (e *Entry) classify(kind, address string) {
	switch {
	case e.Odd != "":
	case e.command.to > 0 && address != "":
		e.Odd = fmt.Sprintf("it has a command and a %s: remove one", address)
	case address != "" || remoteKind(kind):
		e.Remote = true
	case e.command.to == 0:
		e.Odd = "it has no command: an extension of the client may start it"
	case e.command.value == "":
		e.Odd = "its command is empty: write one"
	}
	e.Command = e.command.value
	if e.args != nil {
		for _, item := range e.args.items {
			e.Args = append(e.Args, item.value)
		}
	}
}

// remoteKind reports whether kind, the "type" of an entry, is one without a
// command.
func remoteKind(kind string) bool {
	switch strings.ToLower(kind) {
	case "http", "sse", "streamable-http", "streamablehttp", "streamable_http", "ws", "websocket":
		return true
	}
	return false
}

// isSecret reports whether clients keep secrets under key, as values of an object.
func isSecret(key string) bool {
	return key == "env" || key == "headers" || key == tomlHeaders
}

// isAddress reports whether clients keep the URL of a server under key.
func isAddress(key string) bool {
	return key == "url" || key == "serverUrl" || key == "httpUrl"
}

// holdsArguments reports whether command is a program and its arguments in one text. A few
// clients split such a text where an entry has no arguments; attache, which would get it as
// one argument, does not.
func holdsArguments(command string) bool {
	program, _, several := strings.Cut(command, " ")
	if _, err := os.Stat(command); !several || err == nil {
		return false // a path may have blanks in it
	}
	info, err := os.Stat(program)
	return !strings.ContainsAny(program, `/\`) || err == nil && !info.IsDir()
}
