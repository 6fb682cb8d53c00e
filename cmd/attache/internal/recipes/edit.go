package recipes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// mark follows a key that [Add] has written, so that remove takes out nothing that the user wrote.
const mark = "  # attache recipe"

// errAbsent is returned by remove if the configuration does not have the recipe.
var errAbsent = errors.New("the recipe is not in the configuration")

// Add returns content, a configuration file, with body under servers.name. It changes no other byte.
// An error says why body cannot be added and what to do.
func Add(content []byte, name, body string) ([]byte, error) {
	before, err := decode(content)
	if err != nil {
		return nil, err
	}
	servers, known := before["servers"].(map[string]any)
	if _, there := servers[name]; there {
		return nil, fmt.Errorf("servers.%s already exists: remove it first, or add these rules by hand", name)
	}
	if _, there := before["servers"]; there && !known && before["servers"] != nil {
		return nil, errors.New("servers is not a mapping: correct it first")
	}
	f := split(content)
	section := f.section()
	if section.key < 0 {
		f.insert(len(f.lines), "servers:"+mark)
		section = f.section()
	}
	indent := cmp.Or(section.indent, "  ")
	lines := []string{indent + name + ":" + mark}
	for line := range strings.Lines(body) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			line = indent + "  " + line
		}
		lines = append(lines, line)
	}
	f.insert(section.end, lines...)
	after := f.bytes()
	return after, onlyAdds(before, after, name)
}

// remove returns content without the lines that [Add] wrote for name. The error is errAbsent if
// there are none.
func remove(content []byte, name string) ([]byte, error) {
	if _, err := decode(content); err != nil {
		return nil, err
	}
	f := split(content)
	section := f.section()
	for i := section.key + 1; section.key >= 0 && i < section.end; i++ {
		if f.lines[i] != section.indent+name+":"+mark {
			continue
		}
		end := i + 1
		for end < section.end && (f.lines[end] == "" || strings.HasPrefix(f.lines[end], section.indent+" ")) {
			end++
		}
		f.remove(i, end)
		if rest := f.section(); f.lines[rest.key] == "servers:"+mark && rest.end == rest.key+1 {
			f.remove(rest.key, rest.key+1)
		}
		return f.bytes(), nil
	}
	return nil, errAbsent
}

// decode returns the values in a configuration file.
func decode(content []byte) (map[string]any, error) {
	values := map[string]any{}
	if n := bytes.Count(content, []byte("\r\n")); n != bytes.Count(content, []byte("\r")) || n > 0 && n != bytes.Count(content, []byte("\n")) {
		return nil, errors.New("its lines do not all end alike: save it with one kind of line end")
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return values, nil
	}
	_, err := textfile.ParseYAML(content) // Unmarshal takes minutes for deep nesting, which this refuses
	if err == nil {
		err = yaml.Unmarshal(textfile.TrimMark(content), &values)
	}
	if err != nil {
		return nil, errors.New("it is not valid: run \"attache config check\" and correct it first")
	}
	if values == nil { // Unmarshal sets that if the file has only comments
		values = map[string]any{}
	}
	return values, nil
}

// onlyAdds returns an error if the values in after differ from before in anything but servers.name.
// It detects YAML whose lines do not mean what they seem to mean. It may change before.
func onlyAdds(before map[string]any, after []byte, name string) error {
	values, err := decode(after)
	if err == nil {
		if servers, ok := values["servers"].(map[string]any); ok {
			delete(servers, name)
			if len(servers) == 0 && before["servers"] == nil {
				delete(values, "servers")
				delete(before, "servers")
			}
		}
		if reflect.DeepEqual(values, before) {
			return nil
		}
	}
	return errors.New("servers is not written as a block, one server a line: write it so, or add the recipe by hand")
}

// A file is a configuration file as lines without line ends.
type file struct {
	lines []string
	end   string // the line end: "\n" or "\r\n"
	open  bool   // the last line has no line end
}

func split(content []byte) *file {
	f := &file{end: "\n"}
	text := string(content)
	if strings.Contains(text, "\r\n") {
		f.end = "\r\n"
	}
	if text == "" {
		return f
	}
	f.open = !strings.HasSuffix(text, f.end)
	f.lines = strings.Split(strings.TrimSuffix(text, f.end), f.end)
	return f
}

func (f *file) bytes() []byte {
	if len(f.lines) == 0 {
		return nil
	}
	text := strings.Join(f.lines, f.end)
	if !f.open {
		text += f.end
	}
	return []byte(text)
}

func (f *file) insert(at int, lines ...string) { f.lines = slices.Insert(f.lines, at, lines...) }
func (f *file) remove(from, to int)            { f.lines = slices.Delete(f.lines, from, to) }

// A section is the place of the key "servers": its line, -1 if there is none, the line after its
// last entry, and the indentation of its entries.
type section struct {
	key, end int
	indent   string
}

func (f *file) section() section {
	s := section{key: -1}
	for i, line := range f.lines {
		line = string(textfile.TrimMark([]byte(line)))
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case s.key < 0:
			if line == "servers:" || strings.HasPrefix(line, "servers: ") {
				s.key, s.end = i, i+1
			}
		case trimmed == "" || strings.HasPrefix(trimmed, "#") && trimmed == line:
		case trimmed == line: // the next key
			return s
		default:
			s.end = i + 1
			if s.indent == "" && !strings.HasPrefix(trimmed, "#") {
				s.indent = line[:len(line)-len(trimmed)]
			}
		}
	}
	return s
}
