package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

// maxTOMLKeys is the maximum number of keys, tables and lists. The parser compares each table with
// its siblings, which took a minute for 200,000 of them, and it is recursive.
const maxTOMLKeys = 20_000

func (d *Document) readTOML(sections []mcpclient.Section) error {
	text := bytes.TrimPrefix(d.data, []byte(mark))
	if bytes.Count(text, []byte("="))+bytes.Count(text, []byte("[")) > maxTOMLKeys {
		return fmt.Errorf("it has more than %d keys and tables, which no configuration needs: name another file", maxTOMLKeys)
	}
	// The parser that reports offsets reads one line at a time and does not detect duplicate tables.
	var all map[string]any
	if err := toml.Unmarshal(text, &all); err != nil {
		return tomlProblem(err)
	}
	r := &tomlReader{text: text, base: len(d.data) - len(text), sections: sections, found: map[place]*Entry{}}
	r.parser.Reset(text)
	for r.parser.NextExpression() {
		r.expression(r.parser.Expression())
	}
	if err := r.parser.Error(); err != nil {
		return tomlProblem(err)
	}
	d.secrets = r.secrets
	for _, e := range r.found {
		e.classify("", e.toml.url.key.value)
		e.remote = e.toml.remote()
		d.Entries = append(d.Entries, e)
	}
	return nil
}

// tomlProblem returns the parser's error without the lines that it quotes.
func tomlProblem(err error) error {
	text := strings.TrimPrefix(err.Error(), "toml: ")
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, column := at.Position()
		return fmt.Errorf("it is not valid TOML: line %d, column %d: %s: correct it there", line, column, text)
	}
	return fmt.Errorf("it is not valid TOML: %s: correct it", text)
}

// A tomlReader finds servers that are written as tables, inline tables or dotted keys.
type tomlReader struct {
	parser   unstable.Parser
	text     []byte
	base     int // offset of text in the document
	sections []mcpclient.Section
	table    keyPath          // the current table
	skip     bool             // the current table is in an array of tables
	found    map[place]*Entry // their parts can be in several places of the file
	secrets  []span
}

// A place is the place of a server: the index of its section, and its name. Servers of two sections
// can have the same name.
type place struct {
	section int
	name    string
}

// expression reads the header of a table, or a key with its value.
func (r *tomlReader) expression(n *unstable.Node) {
	switch n.Kind {
	case unstable.Table:
		names, at := r.key(n.Key())
		r.table, r.skip = make(keyPath, len(names)), false
		for i, name := range names {
			r.table[i].value = name.value
		}
		r.inTable(r.entry(names, at.from))
	case unstable.ArrayTable:
		r.skip = true // no client has servers there
		if names, at := r.key(n.Key()); len(names) > 2 {
			r.inTable(r.entry(names, at.from))
		}
	case unstable.KeyValue:
		if !r.skip {
			r.keyValue(n, r.table, false)
		}
	}
}

// key returns the names of a dotted key, and its span in r.text.
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

// entry returns the entry that contains path, and the names in path below the section. It creates the
// entry if it is new, records a path below the entry, and returns nil if path is in no section.
func (r *tomlReader) entry(path keyPath, offset int) (*Entry, keyPath) {
	for i, s := range r.sections {
		if len(path) <= len(s) || !slices.EqualFunc(path[:len(s)], s, func(l literal, name string) bool { return l.value == name }) {
			continue
		}
		names := path[len(s):]
		at := place{i, names[0].value}
		e := r.found[at]
		if e == nil {
			e = &Entry{Name: at.name, offset: r.base + offset, toml: &tomlForm{}}
			r.found[at] = e
		}
		if len(names) > 1 {
			e.toml.addKey(names)
		}
		return e, names
	}
	return nil, nil
}

// inTable marks e, an entry or nil, as odd if the table below it is its command or its arguments.
func (r *tomlReader) inTable(e *Entry, below keyPath) {
	if len(below) > 1 && below[1].value == "args" {
		e.Odd = "its args are not a list: write one"
	}
	if len(below) > 1 && below[1].value == "command" {
		e.Odd = "its command is not a text: write one"
	}
}

// keyValue reads one key and its value in the table path. inline is true in an inline table.
func (r *tomlReader) keyValue(n *unstable.Node, path keyPath, inline bool) {
	names, at := r.key(n.Key())
	path = slices.Concat(path, names)
	v := n.Value()
	if v.Kind == unstable.InlineTable {
		r.inTable(r.entry(path, at.from))
		for i := range path {
			path[i].span = span{} // entry has recorded them
		}
		for it := v.Children(); it.Next(); {
			r.keyValue(it.Node(), path, true)
		}
		return
	}
	e, below := r.entry(path, at.from)
	if len(below) > 2 {
		r.inTable(e, below)
	}
	if len(below) > 1 {
		e.toml.addValue(below, v.Kind == unstable.String, string(v.Data))
	}
	switch len(below) {
	case 1:
		e.Odd = "it is not a table: correct it"
	case 2:
		r.field(e, n, names[len(names)-1], at, inline)
	case 3:
		if isSecret(below[1].value) && v.Raw.Length > 0 {
			r.secrets = append(r.secrets, r.literal(v).span)
		}
	}
}

// field reads one field of a server. at is the span of its key, and last the key's last name.
func (r *tomlReader) field(e *Entry, n *unstable.Node, last literal, at span, inline bool) {
	v, f := n.Value(), r.tomlField(n, last, at, inline)
	switch name := last.value; {
	case name == "command" && v.Kind != unstable.String:
		e.Odd = "its command is not a text: write one"
		return
	case name == "command" && inline:
		e.command, e.newArgs = f.value, newArgs{before: ", args = ", at: f.value.to}
	case name == "command":
		e.command, e.newArgs = f.value, newArgs{before: f.prefix + "args = ", after: f.between, ahead: true, at: f.from}
	case name == "args":
		r.args(e, v, f.value.span)
	case v.Kind != unstable.String && v.Kind != unstable.Array:
		return
	}
	e.toml.setField(last.value, f)
}

// literal returns the string v with its position in the document.
func (r *tomlReader) literal(v *unstable.Node) literal {
	from := r.base + int(v.Raw.Offset)
	return literal{span{from, from + int(v.Raw.Length)}, string(v.Data)}
}

// lineBreak returns the text between two lines of a table: the line break, and the indentation of
// the next line. at is the span of a key in the table, and its value ends at the offset to of the
// document.
func (r *tomlReader) lineBreak(at span, to int) string {
	line := r.text[:at.from]
	indent := string(line[bytes.LastIndexByte(line, '\n')+1:])
	if i := bytes.IndexByte(r.text[to-r.base:], '\n'); i > 0 && r.text[to-r.base+i-1] == '\r' {
		return "\r\n" + indent
	}
	return "\n" + indent
}

// args reads v, the arguments of a server, which are at the place at.
func (r *tomlReader) args(e *Entry, v *unstable.Node, at span) {
	if v.Kind != unstable.Array {
		e.Odd = "its args are not a list: write one"
		return
	}
	e.args = &list{span: at}
	for it := v.Children(); it.Next(); {
		if it.Node().Kind != unstable.String {
			e.Odd = "its args are not all texts: write each as one"
			return
		}
		e.args.items = append(e.args.items, r.literal(it.Node()))
	}
	if len(e.args.items) > 0 {
		between := string(r.text[at.from+1-r.base : e.args.items[0].from-r.base])
		if strings.Contains(between, "\n") && strings.TrimSpace(between) == "" {
			e.args.lead = between
		}
	}
}

// tomlField returns n as a field of a server. at is the span of its key, and last the key's last
// name.
func (r *tomlReader) tomlField(n *unstable.Node, last literal, at span, inline bool) tomlField {
	f := tomlField{key: last, from: r.base + at.from, prefix: string(r.text[at.from : last.from-r.base])}
	if v := n.Value(); v.Kind == unstable.Array {
		// The parser reports the span of the whole expression, but not that of a list. Only white space
		// and "=" are between the key and the list.
		f.value.span = span{r.base + at.to + bytes.IndexByte(r.text[at.to:], '['), r.base + int(n.Raw.Offset+n.Raw.Length)}
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
