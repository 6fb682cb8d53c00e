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

// A Variable is an environment variable.
type Variable struct{ Name, Value string }

// An Injection describes what [Inject] does to the servers of a configuration.
type Injection struct {
	// Variables are added to the environment of every server. They do not replace variables of the
	// same name.
	Variables []Variable
	// LeaveOut returns the reason to remove a server, or "" to keep it. If LeaveOut is nil, all
	// servers are kept.
	LeaveOut func(name string) string
	// Overrides are variables for single servers, by the server's name. They replace variables of
	// the same name.
	Overrides map[string]map[string]string
}

// An InjectResult reports what [Inject] did.
type InjectResult struct {
	// Content is the new configuration.
	Content []byte
	// Servers are the names of all servers in the old configuration.
	Servers []string
	// LeftOut are the servers that were removed.
	LeftOut []OmittedServer
	// Kept are the variables that were not replaced although they have another value.
	Kept []KeptVariable
}

// An OmittedServer is a server that was removed, and the reason.
type OmittedServer struct{ Server, Why string }

// A KeptVariable is a variable that a server's entry sets itself.
type KeptVariable struct {
	Server   string
	Variable string
}

// Inject applies in to every server in data, a configuration with "mcpServers". All other bytes of
// data stay the same. It makes one pass over data.
//
// An error gives the problem of data and its position. Inject refuses a configuration that parsers
// may read differently. With two objects of the same name, one parser uses the first and another the
// last, so a server could not be removed reliably.
func Inject(data []byte, in Injection) (InjectResult, error) {
	if err := checkUTF8(data); err != nil {
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

type injector struct {
	Injection
	data    []byte
	texts   []string // the Variables as members of an object
	splices []splice
	done    InjectResult
}

func (j *injector) errorAt(offset int, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", lineAt(j.data, offset), fmt.Sprintf(format, args...))
}

// root edits the servers of the configuration root.
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
		return j.errorAt(m.Name.StartOffset, `"mcpServers" is not an object: correct it there`)
	}
	return j.servers(servers)
}

// only returns the member of object with the given name, or nil if there is none. It returns an
// error for two such members, and for one whose name differs only in case, which some parsers accept.
func (j *injector) only(object *hujson.Object, name string) (*hujson.ObjectMember, error) {
	var found *hujson.ObjectMember
	for i := range object.Members {
		m := &object.Members[i]
		switch own := nameOf(*m); {
		case !strings.EqualFold(own, name):
			continue
		case own != name:
			return nil, j.errorAt(m.Name.StartOffset, "%q is %q to readers that do not mind case, and to others it is not: rename or remove it", own, name)
		}
		if found != nil {
			return nil, j.errorAt(m.Name.StartOffset, "%q appears twice, and readers differ in which they take: remove one", name)
		}
		found = m
	}
	return found, nil
}

// servers edits the servers, and removes those that LeaveOut returns a reason for.
func (j *injector) servers(all *hujson.Object) error {
	omitted := make([]bool, len(all.Members))
	for i := range all.Members {
		m := &all.Members[i]
		name := nameOf(*m)
		j.done.Servers = append(j.done.Servers, name)
		if j.LeaveOut != nil {
			if why := j.LeaveOut(name); why != "" {
				omitted[i] = true
				j.done.LeftOut = append(j.done.LeftOut, OmittedServer{name, why})
				continue
			}
		}
		if err := j.server(name, m); err != nil {
			return err
		}
	}
	j.remove(all, omitted)
	return nil
}

func (j *injector) remove(object *hujson.Object, omitted []bool) {
	last := len(omitted) - 1
	for i, m := range object.Members {
		if !omitted[i] {
			continue
		}
		end := m.Value.EndOffset + len(m.Value.AfterExtra)
		if j.data[end] == ',' {
			end++
		}
		j.splices = append(j.splices, splice{span{m.Name.StartOffset - len(m.Name.BeforeExtra), end}, ""})
	}
	kept := last
	for kept >= 0 && omitted[kept] {
		kept--
	}
	if kept < 0 || kept == last {
		return
	}
	tail := object.Members[last].Value
	if j.data[tail.EndOffset+len(tail.AfterExtra)] != ',' {
		// The member that is now the last must not have a comma after it.
		v := object.Members[kept].Value
		comma := v.EndOffset + len(v.AfterExtra)
		j.splices = append(j.splices, splice{span{comma, comma + 1}, ""})
	}
}

func (j *injector) server(name string, m *hujson.ObjectMember) error {
	object, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		return j.errorAt(m.Name.StartOffset, "the server %q is not an object: correct it there", name)
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
		return j.errorAt(env.Name.StartOffset, "the env of %q is not an object: correct it there", name)
	}
	j.override(name, variables)
	if members := j.members(name, variables); members != nil {
		j.add(env.Value, variables, members...)
	}
	return nil
}

// override replaces the values of those variables in env that have an override.
func (j *injector) override(server string, env *hujson.Object) {
	for _, m := range env.Members {
		if value, ok := j.Overrides[server][nameOf(m)]; ok {
			j.splices = append(j.splices, splice{span{m.Value.StartOffset, m.Value.EndOffset}, quote(value)})
		}
	}
}

// members returns the variables to add to env, as members of an object.
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

// add appends members to object, the value of v, with the same spacing as the last member.
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
