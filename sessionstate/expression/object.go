package expression

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// An object is the run-time value of a name such as session. Its fields are known at compile
// time, so Compile detects misspelt fields.
type object struct {
	in *Inputs
	t  *types.Type
}

// ConvertToNative implements ref.Val. evalError knows this error and that of ConvertToType by their texts,
// "unsupported type" and "type conversion".
func (o *object) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("unsupported type: an object of a session")
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return o.t
	}
	return types.NewErr("type conversion: an object of a session")
}

// Equal implements ref.Val.
func (o *object) Equal(other ref.Val) ref.Val { return types.Bool(other == ref.Val(o)) }

// Type implements ref.Val.
func (o *object) Type() ref.Type { return o.t }

// Value implements ref.Val.
func (o *object) Value() any { return o }

// The objects, in the order of objectPaths.
const (
	objSession = iota
	objWorkspace
	objPrincipal
	objTool
	objAnnotations
	objServer
	objects
)

var objectPaths = [objects]string{"session", "session.workspace", "principal", "tool", "tool.annotations", "server"}

const typePrefix = "attache."

// vocabularyOf returns the type of each object and the fields of each type.
func vocabularyOf() ([objects]*types.Type, map[string]map[string]*types.FieldType) {
	var t [objects]*types.Type
	fields := map[string]map[string]*types.FieldType{}
	for i, path := range objectPaths {
		t[i] = types.NewObjectType(typePrefix + path)
		fields[typePrefix+path] = map[string]*types.FieldType{}
	}
	add := func(which int, name string, f *types.FieldType) { fields[t[which].TypeName()][name] = f }
	for which, names := range map[int][]string{
		objSession:   {"id", "trust", "conversation"},
		objWorkspace: {"path", "id"},
		objPrincipal: {"user", "tenant", "email", "plan", "scope"},
		objTool:      {"name"},
		objServer:    {"name"},
	} {
		for _, name := range names {
			path := objectPaths[which] + "." + name
			add(which, name, field(types.StringType, func(in *Inputs) any { return in.text(path) }, func(in *Inputs) bool { return in.text(path) != "" }))
		}
	}
	for _, name := range []string{"roles", "permissions"} {
		path := "principal." + name
		add(objPrincipal, name, field(types.NewListType(types.StringType), func(in *Inputs) any { return in.list(path) }, func(in *Inputs) bool { return len(in.list(path)) > 0 }))
	}
	add(objSession, "workspace", field(t[objWorkspace], func(in *Inputs) any { return in.object(objWorkspace) }, func(in *Inputs) bool {
		return in.text("session.workspace.path") != "" || in.text("session.workspace.id") != ""
	}))
	// This function returns a bool, which cannot be unknown. So it notes in the probe that it was called.
	add(objTool, "annotations", field(t[objAnnotations], func(in *Inputs) any { return in.object(objAnnotations) }, func(in *Inputs) bool {
		in.probe.tested = in.probe.unknown
		return len(in.Annotations) > 0
	}))
	add(objAnnotations, "title", annotationField("title", types.StringType))
	for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		add(objAnnotations, name, annotationField(name, types.BoolType))
	}
	return t, fields
}

// field returns a field of an object that takes its value from the inputs.
func field(t *types.Type, get func(*Inputs) any, known func(*Inputs) bool) *types.FieldType {
	return &types.FieldType{
		Type:    t,
		IsSet:   func(o any) bool { return known(o.(*object).in) },
		GetFrom: func(o any) (any, error) { return get(o.(*object).in), nil },
	}
}

// annotationField returns the field for an annotation. A value of another type than t is ignored: see
// the package comment.
func annotationField(name string, t *types.Type) *types.FieldType {
	return &types.FieldType{
		Type: t,
		IsSet: func(o any) bool {
			in := o.(*object).in
			in.probe.tested = in.probe.unknown
			a, err := in.decodedAnnotations()
			return err == nil && a[name] != nil && a[name].Type() == t
		},
		GetFrom: func(o any) (any, error) {
			in := o.(*object).in
			if in.probe.unknown {
				return types.NewUnknown(0, nil), nil
			}
			a, err := in.decodedAnnotations()
			if err != nil {
				return nil, err
			}
			if v := a[name]; v != nil && v.Type() == t {
				return v, nil
			}
			return defaultAnnotation(a, name), nil
		},
	}
}

// defaultAnnotation returns the default of an annotation (schema.ts, ToolAnnotations).
// destructiveHint has a meaning only for tools that are not read-only.
func defaultAnnotation(a map[string]ref.Val, name string) ref.Val {
	switch name {
	case "title":
		return types.String("")
	case "destructiveHint":
		return types.Bool(a["readOnlyHint"] != types.True)
	}
	return types.Bool(name == "openWorldHint")
}

// A provider adds the types of objects to those of CEL.
type provider struct {
	types.Provider
	fields map[string]map[string]*types.FieldType
}

// FindStructType implements types.Provider. The checker asks it and FindStructFieldType for the names
// in an expression, and the engine takes GetFrom and IsSet of the fields from there.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if p.fields[name] != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldType implements types.Provider.
func (p *provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if f := p.fields[name]; f != nil {
		t, ok := f[field]
		return t, ok
	}
	return p.Provider.FindStructFieldType(name, field)
}

// fieldNames returns the names of the fields of the object at path, "" if there is none.
func fieldNames(path string) string {
	_, fields := vocabularyOf()
	return strings.Join(slices.Sorted(maps.Keys(fields[typePrefix+path])), ", ")
}

// decodedInputs caches the parts of Inputs that were decoded.
type decodedInputs struct {
	of      *Inputs // nil before the first evaluation; differs in a copy of Inputs, whose objects point to the original
	objects [objects]object

	arguments   ref.Val
	annotations map[string]ref.Val
	annotErr    error
}

// An annotationProbe makes annotations unknown, to find whether a result depends on them.
type annotationProbe struct {
	unknown bool // reading an annotation yields a CEL unknown
	tested  bool // an expression tested with has(), which cannot be unknown, whether there is an annotation
}

// makeObjects makes the objects of the inputs, unless they exist.
func (in *Inputs) makeObjects(t *[objects]*types.Type) {
	d := &in.derived
	if d.of == in {
		return
	}
	*d = decodedInputs{of: in}
	for i := range d.objects {
		d.objects[i] = object{in, t[i]}
	}
}

func (in *Inputs) object(i int) *object { return &in.derived.objects[i] }

// decodedArguments returns the arguments as a CEL map, or a CEL error.
func (in *Inputs) decodedArguments() ref.Val {
	d := &in.derived
	if d.arguments == nil {
		members, err := decodeObject(in.Arguments)
		if d.arguments = types.NewStringInterfaceMap(types.DefaultTypeAdapter, members); err != nil {
			d.arguments = types.WrapErr(err)
		}
	}
	return d.arguments
}

// decodedAnnotations returns the annotations. It decodes them once for a call, not once for each rule,
// even if they are invalid: it keeps the error too.
func (in *Inputs) decodedAnnotations() (map[string]ref.Val, error) {
	d := &in.derived
	if d.annotations == nil && d.annotErr == nil {
		members, err := decodeObject(in.Annotations)
		d.annotErr = err
		d.annotations = map[string]ref.Val{}
		for key, v := range members {
			d.annotations[key], _ = v.(ref.Val)
		}
	}
	return d.annotations, d.annotErr
}

// An activation returns the values of the names in an expression. CEL asks for a value when the evaluation
// reads its name. So the arguments are decoded only if a rule reads them.
type activation Inputs

// ResolveName implements cel.Activation.
func (a *activation) ResolveName(name string) (any, bool) {
	in := (*Inputs)(a)
	switch name {
	case "session":
		return in.object(objSession), true
	case "principal":
		return in.object(objPrincipal), true
	case "tool":
		return in.object(objTool), true
	case "server":
		return in.object(objServer), true
	case "arguments":
		return in.decodedArguments(), true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (a *activation) Parent() cel.Activation { return nil }
