package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

func (d *Document) readJSON(sections []mcpclient.Section) error {
	if len(bytes.TrimSpace(bytes.TrimPrefix(d.data, []byte(mark)))) == 0 {
		return nil // an empty file has no servers
	}
	root, err := parseJSON(d.data)
	if err != nil {
		return err
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return errors.New("it is not an object: a configuration is { ... }")
	}
	for _, s := range sections {
		d.descend(root, s, "")
	}
	return nil
}

// descend reads the servers in the objects at path below v. project is the name that "*" matched.
func (d *Document) descend(v hujson.Value, path mcpclient.Section, project string) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return
	}
	if len(path) == 0 || path[0] == mcpclient.Typed {
		for i := range object.Members {
			e := jsonEntry(&object.Members[i], project)
			e.list = v.StartOffset
			if len(path) > 0 && (e.remote == nil || !e.remote.kind.exists()) {
				continue
			}
			if i > 0 {
				e.previous = object.Members[i-1].Value.EndOffset
			}
			if i+1 < len(object.Members) {
				e.next = object.Members[i+1].Name.StartOffset
			}
			d.Entries = append(d.Entries, e)
			d.addSecrets(object.Members[i].Value)
		}
		return
	}
	found := 0
	for _, m := range object.Members {
		name := nameOf(m)
		switch path[0] {
		case "*":
			d.descend(m.Value, path[1:], name)
		case name:
			if found++; found == 2 {
				d.Warnings = append(d.Warnings, fmt.Sprintf("line %d: %q appears twice: most clients take the last; both are treated alike, join them",
					lineAt(d.data, m.Name.StartOffset), name))
			}
			d.descend(m.Value, path[1:], project)
		}
	}
}

func (d *Document) addSecrets(v hujson.Value) {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return
	}
	for _, m := range object.Members {
		inner, ok := m.Value.Value.(*hujson.Object)
		switch {
		case !ok:
		case isSecret(nameOf(m)):
			for _, secret := range inner.Members {
				d.secrets = append(d.secrets, span{secret.Value.StartOffset, secret.Value.EndOffset})
			}
		case nameOf(m) == "command" || nameOf(m) == "transport":
			d.addSecrets(m.Value) // Zed's older form, Cline
		}
	}
}

func jsonEntry(m *hujson.ObjectMember, project string) *Entry {
	e := &Entry{Name: nameOf(*m), Project: project, offset: m.Name.StartOffset, end: m.Value.EndOffset}
	object, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		e.Odd = "it is not an object: correct it"
		return e
	}
	outer := object
	if m := memberNamed(outer, "transport"); m != nil {
		if inner, ok := m.Value.Value.(*hujson.Object); ok {
			object = inner // Cline's form: "transport": {"type": ..., "command": ..., "args": [...]}
			e.Odd = besideTransport(outer)
		}
	}
	command, key := object, "command"
	if m := memberNamed(object, key); m != nil {
		if inner, ok := m.Value.Value.(*hujson.Object); ok {
			command, key = inner, "path" // Zed's older form: "command": {"path": ..., "args": [...]}
		}
	}
	e.jsonCommand(command, key)
	e.remote = readRemote(object)
	e.remote.login = e.remote.login || slices.ContainsFunc(outer.Members, isLogin)
	if key := e.remote.otherAddress(); key != "" && e.Odd == "" && e.command.to == 0 {
		e.Odd = fmt.Sprintf(`its address is in %q, which wrap does not change: write it as "url" if the client reads that`, key)
	}
	e.classify(e.remote.kind.value.value, e.remote.address.key.value)
	return e
}

// besideTransport returns the reason why an entry with an object "transport" is not wrapped, or "".
func besideTransport(object *hujson.Object) string {
	transports := 0
	for _, m := range object.Members {
		switch name := nameOf(m); {
		case name == "command" || isAddress(name):
			return fmt.Sprintf("it has a transport and a %s: remove one", name)
		case name == "transport":
			transports++
		}
	}
	if transports > 1 {
		return `"transport" appears twice, and clients differ in which they take: remove one`
	}
	return ""
}

// jsonCommand reads the command of e, which is the member key of object, and its arguments.
func (e *Entry) jsonCommand(object *hujson.Object, key string) {
	seen := map[string]bool{}
	for _, m := range object.Members {
		switch name := nameOf(m); {
		case name != key && name != "args":
			continue
		case seen[name]:
			e.Odd = fmt.Sprintf("%q appears twice, and clients differ in which they take: remove one", name)
			return
		case name == key:
			e.jsonCommandValue(m)
		default:
			e.jsonArgs(m.Value)
		}
		seen[nameOf(m)] = true
	}
}

// jsonCommandValue reads the member m with the program.
func (e *Entry) jsonCommandValue(m hujson.ObjectMember) {
	v := m.Value
	if array, ok := v.Value.(*hujson.Array); ok && nameOf(m) == "command" && len(array.Elements) > 0 {
		e.jsonArgs(v)
		e.command, e.args.items, e.listed = e.args.items[0], e.args.items[1:], true
		return
	}
	l, ok := v.Value.(hujson.Literal)
	if !ok || l.Kind() != '"' {
		e.Odd = "its command is not a text: write one"
		return
	}
	e.command = literal{span{v.StartOffset, v.EndOffset}, l.String()}
	e.newArgs = newArgs{before: "," + gap(m) + `"args":` + whiteSpace(v.BeforeExtra), at: v.EndOffset}
}

func (e *Entry) jsonArgs(v hujson.Value) {
	array, ok := v.Value.(*hujson.Array)
	switch {
	case isNull(v): // unwrapping would restore a list
		e.Odd = "its args are null: write a list, or remove them"
		return
	case !ok:
		e.Odd = "its args are not a list: write one"
		return
	}
	e.args = &list{span: span{v.StartOffset, v.EndOffset}}
	for i, item := range array.Elements {
		if extra := item.BeforeExtra; i == 0 && extra.IsStandard() && bytes.Contains(extra, []byte("\n")) {
			e.args.lead = string(extra)
		}
		e.args.items = append(e.args.items, literal{span{item.StartOffset, item.EndOffset}, textOf(item)})
	}
}
