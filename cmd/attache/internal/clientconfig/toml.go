package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxTOMLKeys is how many keys, tables and lists a configuration may have. The parser
// compares each table with its neighbours, so 200,000 of them took it a minute, and
// calls itself for each level of nesting.
const maxTOMLKeys = 20_000

// readTOML finds the servers in d.
func (d *Document) readTOML(sections []section) error {
	text := bytes.TrimPrefix(d.data, []byte(mark))
	if bytes.Count(text, []byte("="))+bytes.Count(text, []byte("[")) > maxTOMLKeys {
		return fmt.Errorf("it has more than %d keys and tables, as no configuration has: name another file", maxTOMLKeys)
	}
	// The parser that tells where things stand takes one line at a time and
	// would not notice a table that is there twice.
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		return tomlProblem(err)
	}
	r := &tomlReader{text: text, base: len(d.data) - len(text), sections: sections, found: map[string]*tomlEntry{}}
	r.parser.Reset(text)
	for r.parser.NextExpression() {
		r.expression(r.parser.Expression())
	}
	if err := r.parser.Error(); err != nil {
		return tomlProblem(err)
	}
	d.secrets = r.secrets
	for _, e := range r.found {
		e.classify("", e.address)
		d.Entries = append(d.Entries, &e.Entry)
	}
	return nil
}

// tomlProblem says what the parser found wrong, without the lines around it.
func tomlProblem(err error) error {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, column := at.Position()
		return fmt.Errorf("it is not valid TOML: line %d, column %d: %s: correct it there", line, column, text)
	}
	return fmt.Errorf("it is not valid TOML: %s: correct it", text)
}

// A tomlEntry is an entry that is being read. Its parts may stand in several
// places of the file.
type tomlEntry struct {
	Entry
	address string
}

// A tomlReader finds servers, whether they are tables, inline tables or dotted
// keys.
type tomlReader struct {
	parser   unstable.Parser
	text     []byte
	base     int // where text begins in the document
	sections []section
	table    []string // the table the lines belong to; nil: one of an array of tables
	skip     bool     // the lines belong to an array of tables
	found    map[string]*tomlEntry
	secrets  []span
}

// expression reads one line of the file, or one value over several lines.
func (r *tomlReader) expression(n *unstable.Node) {
	switch n.Kind {
	case unstable.Table:
		names, at := r.key(n.Key())
		r.table, r.skip = names, false
		r.entry(names, at.from)
	case unstable.ArrayTable:
		r.skip = true // no server is one of several of a name
	case unstable.KeyValue:
		if !r.skip {
			r.keyValue(n, r.table, false)
		}
	}
}

// key returns the names of a dotted key and where it stands, and in last where
// the last of its names does.
func (r *tomlReader) key(it unstable.Iterator) (names []string, at span) {
	for it.Next() {
		raw := it.Node().Raw
		if names == nil {
			at.from = int(raw.Offset)
		}
		at.to = int(raw.Offset + raw.Length)
		names = append(names, string(it.Node().Data))
	}
	return names, at
}

// entry returns the entry that path is or lies in, made if it is new, and how far
// below the section path goes; nil if there is none.
func (r *tomlReader) entry(path []string, offset int) (e *tomlEntry, depth int) {
	for _, s := range r.sections {
		depth = len(path) - len(s)
		if depth < 1 || !slices.Equal(path[:len(s)], []string(s)) {
			continue
		}
		name := path[len(s)]
		if r.found[name] == nil {
			r.found[name] = &tomlEntry{Entry: Entry{Name: name, offset: r.base + offset}}
		}
		return r.found[name], depth
	}
	return nil, 0
}

// keyValue reads one key and its value, which belong to the table path. inline
// says that they stand in an inline table.
func (r *tomlReader) keyValue(n *unstable.Node, path []string, inline bool) {
	names, at := r.key(n.Key())
	path = slices.Concat(path, names)
	v := n.Value()
	if v.Kind == unstable.InlineTable {
		r.entry(path, at.from)
		for it := v.Children(); it.Next(); {
			r.keyValue(it.Node(), path, true)
		}
		return
	}
	switch e, depth := r.entry(path, at.from); depth {
	case 1:
		e.Odd = "it is not a table"
	case 2:
		r.field(e, n, at, inline)
	case 3:
		if isSecret(path[len(path)-2]) && v.Raw.Length > 0 {
			r.secrets = append(r.secrets, r.literal(v).span)
		}
	}
}

// field reads one field of a server, whose key stands at at.
func (r *tomlReader) field(e *tomlEntry, n *unstable.Node, at span, inline bool) {
	v := n.Value()
	keys := n.Key()
	var last *unstable.Node
	for keys.Next() {
		last = keys.Node()
	}
	switch name := string(last.Data); {
	case name == "command" && v.Kind != unstable.String:
		e.Odd = "its command is not a text"
	case name == "command":
		e.command = r.literal(v)
		e.newArgs = r.newArgs(e.command, at, string(r.text[at.from:last.Raw.Offset]), inline)
	case name == "args":
		r.args(e, n, at)
	case isAddress(name):
		e.address = name
	}
}

// literal returns a text of the file.
func (r *tomlReader) literal(v *unstable.Node) literal {
	from := r.base + int(v.Raw.Offset)
	return literal{span{from, from + int(v.Raw.Length)}, string(v.Data)}
}

// newArgs returns how arguments are written for the command, whose key stands at
// at and has the names in prefix before its last.
func (r *tomlReader) newArgs(command literal, at span, prefix string, inline bool) newArgs {
	if inline {
		return newArgs{before: ", args = ", at: command.to}
	}
	line := r.text[:at.from]
	indent := string(line[bytes.LastIndexByte(line, '\n')+1:])
	end := "\n"
	if i := bytes.IndexByte(r.text[command.to-r.base:], '\n'); i > 0 && r.text[command.to-r.base+i-1] == '\r' {
		end = "\r\n"
	}
	return newArgs{before: prefix + "args = ", after: end + indent, ahead: true, at: r.base + at.from}
}

// args reads the list of arguments, the value of n, whose key stands at at.
func (r *tomlReader) args(e *tomlEntry, n *unstable.Node, at span) {
	v := n.Value()
	if v.Kind != unstable.Array {
		e.Odd = "its args are not a list"
		return
	}
	// The parser says where the whole line is, and of a list not even where it
	// begins: behind the key come white space, "=" and more white space.
	from := at.to + bytes.IndexByte(r.text[at.to:], '[')
	to := int(n.Raw.Offset + n.Raw.Length)
	e.args = &list{span: span{r.base + from, r.base + to}}
	for it := v.Children(); it.Next(); {
		if it.Node().Kind != unstable.String {
			e.Odd = "its args are not all texts"
			return
		}
		e.args.items = append(e.args.items, r.literal(it.Node()))
	}
	if len(e.args.items) > 0 {
		between := string(r.text[from+1 : e.args.items[0].from-r.base])
		if strings.Contains(between, "\n") && strings.TrimSpace(between) == "" {
			e.args.lead = between
		}
	}
}
