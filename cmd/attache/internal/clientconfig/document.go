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

	"github.com/attache-mcp/attache/cmd/attache/internal/clientfile"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// A Document is the content of a client's configuration file, with the servers found in it.
type Document struct {
	// Entries are the servers in the order of the file.
	Entries []*Entry
	// Warnings are problems of the file to show to the user, each with its line.
	Warnings []string

	data    []byte
	client  *mcpclient.Client // nil: unknown
	secrets []span            // the values of variables and headers, which must not be shown
}

// An Entry is one server in a configuration.
type Entry struct {
	// Name is the server's name. Project is the project that it is for, in a file with several
	// projects.
	Name, Project string
	// Line is the line at which it begins.
	Line int
	// Remote is true for a server with a URL and no command.
	Remote bool
	// Command and Args are the command that the client runs. Elements of Args that are not strings
	// are empty.
	Command string
	Args    []string
	// Odd is the reason why the entry cannot be edited, "" if it can.
	Odd string

	command literal
	args    *list // nil: none
	remote  *remoteForm
	toml    *tomlForm // nil in a JSON file
	newArgs newArgs   // used if args is nil
	listed  bool      // the command is a list that holds args too, as in opencode
	offset  int
	// In a JSON file: the offsets at which the list of this entry begins, this entry ends, the member
	// before it in the list ends, and the one after it begins; 0 if there is none.
	list, end, previous, next int
}

// A list is a list of arguments and its position.
type list struct {
	span
	items []literal // an item that is not a string has the value ""
	// lead is the white space between the bracket and the first item. It is empty if it has no line
	// break, or if a comment precedes the item.
	lead string
}

// newArgs describes how to write the arguments of an entry that has none: before, the list and
// after, at the offset of the command's value or key.
type newArgs struct {
	before, after string
	// ahead is true if they are written before the command's key, and false if after its value.
	ahead bool
	at    int
}

// text returns a new list of arguments. items are written as they are. The commas have no space
// after them, so that unwrapping can distinguish this list from one that existed before and was
// empty.
func (m newArgs) text(items []string) string {
	return m.before + "[" + strings.Join(items, ",") + "]" + m.after
}

// Open loads the file f and reads its servers.
func Open(f mcpclient.File) (*Document, error) {
	content, _, err := clientfile.Load(f.Path)
	if err != nil {
		return nil, err
	}
	return Read(f, content)
}

// maxServers is the maximum number of servers in a file. The time that Diff takes grows with its
// square.
const maxServers = 5_000

// Read finds the servers of file in data, its content. The error gives the problem and its position,
// but quotes nothing, because these files contain secrets.
func Read(file mcpclient.File, data []byte) (*Document, error) {
	d := &Document{data: data, client: file.Client}
	if err := checkUTF8(data); err != nil {
		return nil, err
	}
	var err error
	if file.IsTOML() {
		err = d.readTOML(file.Sections())
	} else {
		err = d.readJSON(file.Sections())
	}
	switch ext := strings.ToLower(filepath.Ext(file.Path)); {
	case err != nil && (ext == ".yaml" || ext == ".yml"):
		return nil, errors.New(`it is YAML, and attache edits JSON and TOML alone: put "attache --" in front of the server's command yourself`)
	case err != nil:
		return nil, err
	}
	if len(d.Entries) > maxServers {
		return nil, fmt.Errorf("it has more than %d servers, which no configuration needs: name another file", maxServers)
	}
	slices.SortStableFunc(d.Entries, func(a, b *Entry) int { return a.offset - b.offset })
	slices.SortFunc(d.secrets, func(a, b span) int { return a.from - b.from })
	line, at := 1, 0
	for _, e := range d.Entries {
		line += bytes.Count(data[at:e.offset], []byte("\n"))
		e.Line, at = line, e.offset
	}
	d.warnDuplicates()
	return d, nil
}

// mark is the byte order mark, which some Windows editors write at the start of a file.
const mark = "\xef\xbb\xbf"

func checkUTF8(data []byte) error {
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

// warnDuplicates adds a warning for servers with the same name. Clients use only one of them, most
// of them the last, without reporting it.
func (d *Document) warnDuplicates() {
	type name struct{ project, name string }
	seen := map[name]*Entry{}
	for _, e := range d.Entries {
		key := name{e.Project, e.Name}
		if first := seen[key]; first != nil {
			d.Warnings = append(d.Warnings, fmt.Sprintf("%q appears twice, in lines %d and %d: most clients take the last; both are treated alike, remove one",
				e.Name, first.Line, e.Line))
		}
		seen[key] = e
	}
}

// classify sets the kind of the server e, its command and its arguments. kind is the "type" of the
// entry, and address the key of its URL.
func (e *Entry) classify(kind, address string) {
	switch {
	case e.Odd != "":
	case e.command.to > 0 && address != "":
		e.Odd = fmt.Sprintf("it has a command and a %s: remove one", address)
	case e.listed && e.remote.args.exists():
		e.Odd = "its command is a list and it has args too: write them into the command"
	case address != "" || remoteKind(kind):
		e.Remote = true
	case e.command.to == 0:
		e.Odd = "it has no command, so an extension of the client may start it"
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

// remoteKind reports whether kind, the "type" of an entry, is that of a server without a command.
func remoteKind(kind string) bool {
	switch strings.ToLower(kind) {
	case "http", "sse", "streamable-http", "streamablehttp", "streamable_http", "remote", "ws", "websocket":
		return true
	}
	return false
}

// isSecret reports whether key is that of an object whose values can be secrets.
func isSecret(key string) bool {
	return key == "env" || key == "environment" || key == "headers" || key == tomlHeaders
}

// holdsArguments reports whether command is a program with its arguments in one string. A few clients
// split such a string if an entry has no arguments. attache would receive it as one argument and
// does not split it.
func holdsArguments(command string) bool {
	program, _, several := strings.Cut(command, " ")
	if _, err := os.Stat(command); !several || err == nil {
		return false // the path of a file may contain spaces
	}
	info, err := os.Stat(program)
	return !strings.ContainsAny(program, `/\`) || err == nil && !info.IsDir()
}
