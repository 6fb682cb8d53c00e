package arguments

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// A document is the schema of one tool's arguments. It is the upstream's, which
// may nest and refer as it likes, so every walk through it is bounded.
type document struct {
	root wire.Value
	seen int // subschemas, on the way to the types of one property
}

// A sub is a subschema that applies to an object (JSON Schema 2020-12, core, 10.2).
type sub struct {
	schema wire.Value
	weight weight
}

// A weight is what it means for an object that it satisfies a subschema.
type weight uint8

const (
	must weight = iota
	// may: it need not, or not in each case, and no harm is done if it does. The
	// subschema stands below anyOf, then, else, or a dependency.
	may
	// turns: that it does may count against the object. The subschema stands below
	// oneOf, not, or if.
	turns
)

// follow goes along the path of an argument. Element i of levels are the subschemas
// that apply to the object that holds path[i]; there are as many levels as keys.
// whole is false if there may be others, behind a reference that leads elsewhere or
// a nesting without end.
func (d *document) follow(path []string) (levels [][]sub, whole bool) {
	w := walk{d: d}
	w.visit(d.root, must, 0)
	levels, whole = append(levels, w.found), !w.lost && d.root.IsObject()
	for _, key := range path[:len(path)-1] {
		next := walk{d: d}
		for _, s := range levels[len(levels)-1] {
			next.visit(s.schema.Get("properties", key), s.weight, 0)
		}
		levels, whole = append(levels, next.found), whole && !next.lost
	}
	return levels, whole
}

// A walk collects the subschemas that apply to one object.
type walk struct {
	d       *document
	found   []sub
	through []int // where the references stand that it went through, by offset
	lost    bool  // something could not be followed
}

const (
	maxNesting    = 16  // of subschemas that apply to one object
	maxSubschemas = 200 // of them
)

func (w *walk) visit(s wire.Value, weight weight, depth int) {
	if !s.Exists() || string(s.Raw) == "true" || string(s.Raw) == "false" {
		return
	}
	if !s.IsObject() || depth > maxNesting || len(w.found) >= maxSubschemas {
		w.lost = true
		return
	}
	if i := slices.IndexFunc(w.found, func(f sub) bool { return f.schema.Off == s.Off }); i >= 0 {
		if w.found[i].weight >= weight {
			return // nothing new, below neither
		}
		w.found[i].weight = weight
	} else {
		w.found = append(w.found, sub{s, weight})
	}
	for m := range s.Members() {
		w.keyword(s, m, weight, depth+1)
	}
}

// keyword visits what a member of the schema s applies to the same object.
func (w *walk) keyword(s wire.Value, m wire.Member, as weight, depth int) {
	switch m.Key.Text() {
	case "allOf":
		for e := range m.Value.Elements() {
			w.visit(e, as, depth)
		}
	case "anyOf":
		for e := range m.Value.Elements() {
			w.visit(e, max(as, may), depth)
		}
	case "oneOf":
		one := max(as, may)
		if w.d.alternatives(m.Value) > 1 {
			one = turns
		}
		for e := range m.Value.Elements() {
			w.visit(e, one, depth)
		}
	case "not", "if":
		w.visit(m.Value, turns, depth)
	case "then", "else":
		w.visit(m.Value, max(as, may), depth)
	case "dependentSchemas", "dependencies":
		for dependency := range m.Value.Members() {
			if !dependency.Value.IsArray() {
				w.visit(dependency.Value, max(as, may), depth)
			}
		}
	case "$ref":
		target, ok := w.d.resolve(m.Value)
		if !ok {
			w.lost = true
			return
		}
		w.through = append(w.through, s.Off)
		w.visit(target, as, depth)
	case "$dynamicRef", "$recursiveRef":
		w.lost = true
	}
}

// alternatives returns how many of the schemas in a oneOf an object may satisfy.
func (d *document) alternatives(oneOf wire.Value) (n int) {
	for e := range oneOf.Elements() {
		if d.kinds(e, 0)&objects != 0 {
			n++
		}
	}
	return n
}

// onward reports whether one more subschema may be looked at on the way to the types
// of a property, which begins at depth 0. Each may refer to many, and these back to it.
func (d *document) onward(depth int) bool {
	if depth == 0 {
		d.seen = 0
	}
	d.seen++
	return depth <= maxNesting && d.seen <= maxSubschemas
}

// resolve returns what a reference into the document itself refers to, which is
// written as a JSON pointer (RFC 6901) behind a number sign.
func (d *document) resolve(ref wire.Value) (wire.Value, bool) {
	pointer, local := strings.CutPrefix(ref.Text(), "#")
	pointer, err := url.PathUnescape(pointer)
	if !local || err != nil || pointer != "" && pointer[0] != '/' {
		return wire.Value{}, false
	}
	at := d.root
	for n, key := range strings.Split(pointer, "/") {
		if n > 0 {
			at = child(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(key))
		}
	}
	return at, at.Exists()
}

// child returns the member or element of that name.
func child(v wire.Value, key string) wire.Value {
	if !v.IsArray() {
		return v.Get(key)
	}
	index, err := strconv.Atoi(key)
	for e := range v.Elements() {
		if index == 0 && err == nil {
			return e
		}
		index--
	}
	return wire.Value{}
}

// A reference is one place that refers to another in the same document.
type reference struct {
	from   int // the offset of the schema that has the $ref
	target wire.Value
}

// references returns all references in the document; whether what has one is a
// schema or an example does not matter. clear is false if one of them may lead to
// any place.
func (d *document) references() (all []reference, clear bool) {
	clear = true
	named := false // a base of its own: what looks foreign may be local
	each(d.root, func(object wire.Value, m wire.Member) {
		switch {
		case m.Key.Equals("$id") && m.Value.IsString():
			named = true
		case m.Key.Equals("$dynamicRef"), m.Key.Equals("$recursiveRef"):
			clear = false
		case m.Key.Equals("$ref") && m.Value.IsString():
			target, ok := d.resolve(m.Value)
			if ok {
				all = append(all, reference{object.Off, target})
			} else {
				clear = clear && !strings.HasPrefix(m.Value.Text(), "#") && !named
			}
		}
	})
	return all, clear && !(named && len(all) > 0)
}

// each visits every member of every object in v. The frame's depth bounds the
// recursion.
func each(v wire.Value, visit func(object wire.Value, m wire.Member)) {
	for m := range v.Members() {
		visit(v, m)
		each(m.Value, visit)
	}
	for e := range v.Elements() {
		each(e, visit)
	}
}
