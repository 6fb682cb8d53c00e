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
		e.classify("", e.form.url.key.value)
		e.toml, e.remote = &e.form, e.form.remote()
		d.Entries = append(d.Entries, &e.Entry)
	}
	return nil
}

// tomlProblem says what the parser found wrong, without the lines around it.
func tomlProblem(err error) error {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := at.Position()
		return fmt.Errorf("it is not valid TOML: line %d, column %d: %s: correct it there", line, column, text)
	}
	return fmt.Errorf("it is not valid TOML: %s: correct it", text)
}

// A tomlEntry is an entry that is being read. Its parts may stand in several
// places of the file.
type tomlEntry struct {
	Entry
	form tomlForm
}

// A keyPath is the names of a key and of the tables that it is in. Those that another
// line has written have no place.
type keyPath []literal

// startsWith reports whether the first names are those of a section.
func (p keyPath) startsWith(s section) bool {
	return len(p) >= len(s) && slices.EqualFunc(p[:len(s)], s, func(l literal, name string) bool { return l.value == name })
}

// A tomlReader finds servers, whether they are tables, inline tables or dotted
// keys.
type tomlReader struct {
	parser   unstable.Parser
	text     []byte
	base     int // where text begins in the document
	sections []section
	table    keyPath // the table the lines belong to; nil: one of an array of tables
	skip     bool    // the lines belong to an array of tables
	found    map[string]*tomlEntry
	secrets  []span
}

// expression reads one line of the file, or one value over several lines.
func (r *tomlReader) expression(n *unstable.Node) {
	switch n.Kind {
	case unstable.Table:
		names, at := r.key(n.Key())
		r.table, r.skip = make(keyPath, len(names)), false
		for i, name := range names {
			r.table[i].value = name.value
		}
		if e, depth := r.entry(names, at.from); depth >= 2 {
			e.form.name(names[len(names)-depth:])
		}
	case unstable.ArrayTable:
		r.skip = true // no server is one of several of a name
	case unstable.KeyValue:
		if !r.skip {
			r.keyValue(n, r.table, false)
		}
	}
}

// key returns the names of a dotted key, and where it stands in the text.
func (r *tomlReader) key(it unstable.Iterator) (names keyPath, at span) {
	for it.Next() {
		raw := it.Node().Raw
		if names == nil {
			at.from = int(raw.Offset)
		}
		at.to = int(raw.Offset + raw.Length)
		names = append(names, r.literal(it.Node()))
	}
	return names, at
}

// entry returns the entry that path is or lies in, made if it is new, and how far
// below the section path goes; nil if there is none.
func (r *tomlReader) entry(path keyPath, offset int) (e *tomlEntry, depth int) {
	for _, s := range r.sections {
		depth = len(path) - len(s)
		if depth < 1 || !path.startsWith(s) {
			continue
		}
		name := path[len(s)].value
		if r.found[name] == nil {
			r.found[name] = &tomlEntry{Entry: Entry{Name: name, offset: r.base + offset}}
		}
		return r.found[name], depth
	}
	return nil, 0
}

// keyValue reads one key and its value, which belong to the table path. inline
// says that they stand in an inline table.
func (r *tomlReader) keyValue(n *unstable.Node, path keyPath, inline bool) {
	names, at := r.key(n.Key())
	path = slices.Concat(path, names)
	v := n.Value()
	if v.Kind == unstable.InlineTable {
		if e, depth := r.entry(path, at.from); depth >= 2 {
			e.form.name(path[len(path)-depth:])
		}
		path = slices.Clone(path)
		for i := range path {
			path[i].span = span{} // noted
		}
		for it := v.Children(); it.Next(); {
			r.keyValue(it.Node(), path, true)
		}
		return
	}
	e, depth := r.entry(path, at.from)
	if depth >= 2 {
		e.form.name(path[len(path)-depth:])
		e.form.value(path[len(path)-depth:], v.Kind == unstable.String, string(v.Data))
	}
	switch depth {
	case 1:
		e.Odd = "it is not a table"
	case 2:
		r.field(e, n, names[len(names)-1], at, inline)
	case 3:
		if isSecret(path[len(path)-2].value) && v.Raw.Length > 0 {
			r.secrets = append(r.secrets, r.literal(v).span)
		}
	}
}

// field reads one field of a server, whose key stands at at and ends in last.
func (r *tomlReader) field(e *tomlEntry, n *unstable.Node, last literal, at span, inline bool) {
	v := n.Value()
	switch name := last.value; {
	case name == "command" && v.Kind != unstable.String:
		e.Odd = "its command is not a text"
	case name == "command":
		e.command = r.literal(v)
		e.newArgs = r.newArgs(e.command, at, string(r.text[at.from:last.from-r.base]), inline)
	case name == "args":
		r.args(e, n, at)
		e.form.set(name, r.place(n, last, at, inline))
	case v.Kind == unstable.String || v.Kind == unstable.Array:
		e.form.set(name, r.place(n, last, at, inline))
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
	return newArgs{before: prefix + "args = ", after: r.lineBreak(at, command.to), ahead: true, at: r.base + at.from}
}

// lineBreak returns what separates two lines where one begins at at and has something that
// ends at the offset to of the document: the end of a line, and the white space in front of
// the next.
func (r *tomlReader) lineBreak(at span, to int) string {
	line := r.text[:at.from]
	indent := string(line[bytes.LastIndexByte(line, '\n')+1:])
	if i := bytes.IndexByte(r.text[to-r.base:], '\n'); i > 0 && r.text[to-r.base+i-1] == '\r' {
		return "\r\n" + indent
	}
	return "\n" + indent
}

// args reads the list of arguments, the value of n, whose key stands at at.
func (r *tomlReader) args(e *tomlEntry, n *unstable.Node, at span) {
	v := n.Value()
	if v.Kind != unstable.Array {
		e.Odd = "its args are not a list"
		return
	}
	e.args = &list{span: r.listSpan(n, at)}
	from := e.args.from - r.base
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

// listSpan returns where the list is that is the value of n, whose key stands at at. The
// parser says where the whole line is, and of a list not even where it begins: behind the
// key come white space, "=" and more white space.
func (r *tomlReader) listSpan(n *unstable.Node, at span) span {
	from := at.to + bytes.IndexByte(r.text[at.to:], '[')
	return span{r.base + from, r.base + int(n.Raw.Offset+n.Raw.Length)}
}

// place returns a field of a server: n with its key at at, whose last name is last.
func (r *tomlReader) place(n *unstable.Node, last literal, at span, inline bool) tomlField {
	f := tomlField{key: last, from: r.base + at.from, prefix: string(r.text[at.from : last.from-r.base])}
	if v := n.Value(); v.Kind == unstable.Array {
		f.value.span = r.listSpan(n, at)
		for it := v.Children(); it.Next(); {
			f.items = append(f.items, r.literal(it.Node()))
		}
	} else {
		f.value = r.literal(v)
	}
	f.between = ", "
	if !inline {
		f.between = r.lineBreak(at, f.value.to)
	}
	return f
}
