package clientconfig

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// A Variable is a name and a value for an environment.
type Variable struct{ Name, Value string }

// An Injection is what [Inject] does to the servers of a configuration.
type Injection struct {
	// Variables are added to the environment of every server. What stands there
	// under the same name is not overwritten.
	Variables []Variable
	// LeaveOut says why a server is not for this session, empty if it is. Nil
	// leaves out none.
	LeaveOut func(name string) string
	// Overrides are written to the environment of single servers, by their names,
	// in the end and over what stands there.
	Overrides map[string]map[string]string
}

// An InjectResult is what [Inject] did.
type InjectResult struct {
	// Content is the configuration with the context in it.
	Content []byte
	// Servers are the names of all servers in the configuration before.
	Servers []string
	// LeftOut are the servers that were removed.
	LeftOut []OmittedServer
	// Kept are the variables that had another value and keep it.
	Kept []KeptVariable
}

// An OmittedServer is a server that is not for the session, and the reason.
type OmittedServer struct{ Server, Why string }

// A KeptVariable is a variable that a server's entry sets itself.
type KeptVariable struct {
	Server   string
	Variable string
}

// Inject puts what in says into the environment of every server in data, a
// configuration with "mcpServers". All else in data stays as it is, byte for byte.
// It takes the time of one pass over data.
//
// An error says what is wrong with data and where. A configuration that readers
// might take differently is refused, for servers are left out by name: of two
// objects of one name one reader takes the first and another the last.
func Inject(data []byte, in Injection) (InjectResult, error) {
	if err := plain(data); err != nil {
		return InjectResult{}, err
	}
	root, err := parseJSON(data)
	if err != nil {
		return InjectResult{}, err
	}
	j := &injector{Injection: in, data: data}
	for _, v := range in.Variables {
		j.texts = append(j.texts, quote(v.Name)+": "+quote(v.Value))
	}
	if err := j.root(root); err != nil {
		return InjectResult{}, err
	}
	slices.SortFunc(j.splices, func(a, b splice) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	j.done.Content = apply(data, j.splices)
	return j.done, nil
}

// An injector injects into one configuration.
type injector struct {
	Injection
	data    []byte
	texts   []string // the Variables as members of an object
	splices []splice
	done    InjectResult
}

// fault is an error at a place in the configuration.
func (j *injector) fault(offset int, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", lineAt(j.data, offset), fmt.Sprintf(format, args...))
}

// root finds the servers in the configuration.
func (j *injector) root(root hujson.Value) error {
	object, ok := root.Value.(*hujson.Object)
	if !ok {
		return errors.New("it is not an object: a configuration is { ... }")
	}
	m, err := j.only(object, "mcpServers")
	switch {
	case err != nil:
		return err
	case m == nil:
		return errors.New(`there is no "mcpServers" in it: give a configuration with servers`)
	}
	servers, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		return j.fault(m.Name.StartOffset, `"mcpServers" is not an object: correct it there`)
	}
	return j.servers(servers)
}

// only returns the member of object with a name, nil if there is none. Two are an
// error, and so is one whose name differs in case alone: some readers take it.
func (j *injector) only(object *hujson.Object, name string) (*hujson.ObjectMember, error) {
	var found *hujson.ObjectMember
	for i := range object.Members {
		m := &object.Members[i]
		switch own := nameOf(*m); {
		case !strings.EqualFold(own, name):
			continue
		case own != name:
			return nil, j.fault(m.Name.StartOffset, "%q is %q to readers that do not mind case, and to others it is not: rename or remove it", own, name)
		}
		if found != nil {
			return nil, j.fault(m.Name.StartOffset, "%q is there twice, and readers differ in which they take: remove one", name)
		}
		found = m
	}
	return found, nil
}

// servers edits the servers, and takes out those that are not for the session.
func (j *injector) servers(all *hujson.Object) error {
	gone := make([]bool, len(all.Members))
	for i := range all.Members {
		m := &all.Members[i]
		name := nameOf(*m)
		j.done.Servers = append(j.done.Servers, name)
		if j.LeaveOut != nil {
			if why := j.LeaveOut(name); why != "" {
				gone[i] = true
				j.done.LeftOut = append(j.done.LeftOut, OmittedServer{name, why})
				continue
			}
		}
		if err := j.server(name, m); err != nil {
			return err
		}
	}
	j.remove(all, gone)
	return nil
}

// remove takes the members that are gone out of object.
func (j *injector) remove(object *hujson.Object, gone []bool) {
	last := len(gone) - 1
	for i, m := range object.Members {
		if !gone[i] {
			continue
		}
		end := m.Value.EndOffset + len(m.Value.AfterExtra)
		if j.data[end] == ',' {
			end++
		}
		j.splices = append(j.splices, splice{span{m.Name.StartOffset - len(m.Name.BeforeExtra), end}, ""})
	}
	kept := last
	for kept >= 0 && gone[kept] {
		kept--
	}
	if kept < 0 || kept == last {
		return
	}
	tail := object.Members[last].Value
	if j.data[tail.EndOffset+len(tail.AfterExtra)] != ',' {
		// Nothing follows the one that is last now, and JSON has no comma there.
		v := object.Members[kept].Value
		comma := v.EndOffset + len(v.AfterExtra)
		j.splices = append(j.splices, splice{span{comma, comma + 1}, ""})
	}
}

// server edits the environment of one server.
func (j *injector) server(name string, m *hujson.ObjectMember) error {
	object, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		return j.fault(m.Name.StartOffset, "the server %q is not an object: correct it there", name)
	}
	env, err := j.only(object, "env")
	if err != nil {
		return err
	}
	if env == nil {
		j.add(m.Value, object, `"env": {`+strings.Join(j.members(name, nil), ", ")+"}")
		return nil
	}
	if isNull(env.Value) {
		j.splices = append(j.splices, splice{span{env.Value.StartOffset, env.Value.EndOffset}, "{" + strings.Join(j.members(name, nil), ", ") + "}"})
		return nil
	}
	variables, ok := env.Value.Value.(*hujson.Object)
	if !ok {
		return j.fault(env.Name.StartOffset, "the env of %q is not an object: correct it there", name)
	}
	j.override(name, variables)
	if members := j.members(name, variables); members != nil {
		j.add(env.Value, variables, members...)
	}
	return nil
}

// override replaces the values of variables that are there.
func (j *injector) override(server string, env *hujson.Object) {
	for _, m := range env.Members {
		if value, ok := j.Overrides[server][nameOf(m)]; ok {
			j.splices = append(j.splices, splice{span{m.Value.StartOffset, m.Value.EndOffset}, quote(value)})
		}
	}
}

// members returns the variables that env lacks, as members of an object.
func (j *injector) members(server string, env *hujson.Object) []string {
	overrides := j.Overrides[server]
	var out []string
	for i, v := range j.Variables {
		_, overridden := overrides[v.Name]
		m := memberNamed(env, v.Name)
		switch {
		case m != nil && !overridden && textOf(m.Value) != v.Value:
			j.done.Kept = append(j.done.Kept, KeptVariable{server, v.Name})
		case m == nil && !overridden:
			out = append(out, j.texts[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if memberNamed(env, name) == nil {
			out = append(out, quote(name)+": "+quote(overrides[name]))
		}
	}
	return out
}

// add adds members behind the last one of object, which v is, spaced as that is.
func (j *injector) add(v hujson.Value, object *hujson.Object, members ...string) {
	if len(object.Members) == 0 {
		at := v.StartOffset + 1
		j.splices = append(j.splices, splice{span{at, at}, strings.Join(members, ", ")})
		return
	}
	last := object.Members[len(object.Members)-1]
	at := last.Value.EndOffset
	comma := "," + gap(last)
	j.splices = append(j.splices, splice{span{at, at}, comma + strings.Join(members, comma)})
}
