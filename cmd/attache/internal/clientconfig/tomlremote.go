package clientconfig

import (
	"bytes"
	"slices"
	"strings"
)

const (
	// EnvHeaderPrefix is the prefix of the variables that hold the name of another variable, which
	// holds a header. The rest of the name is as for HeaderPrefix.
	EnvHeaderPrefix = "ATTACHE_ENV_HEADER_"
	// bearerFlag names the variable that holds a bearer token.
	bearerFlag = "--bearer-env"
)

// Keys of Codex, for remote servers and for servers that it starts.
const (
	tomlHeaders    = "http_headers"
	tomlEnvHeaders = "env_http_headers"
	tomlBearer     = "bearer_token_env_var"
	tomlEnv        = "env"
	tomlEnvVars    = "env_vars"
)

// A tomlForm holds the fields of a TOML entry for a remote server, wrapped or not. Wrapping changes
// keys, and leaves values in place:
//
//	url = "https://..."             command = "attache"
//	                                args = ["--bearer-env", "TOKEN", "--", "https://..."]
//	bearer_token_env_var = "TOKEN"  env_vars = ["TOKEN"]
//	http_headers = {X-A = "1"}      env = {ATTACHE_HEADER_X_A = "1"}
//	env_http_headers = {X-A = "V"}  env = {ATTACHE_ENV_HEADER_X_A = "V"}, with V in env_vars
type tomlForm struct {
	url, command, args tomlField
	bearer, envVars    tomlField
	tables             []literal // the names of tables of headers or variables, with their positions
	headers            tomlTable
	envHeaders, env    tomlTable
	login, odd         bool
	otherHeaders       bool // a table of headers with the name that JSON clients use
}

type tomlField struct {
	key     literal // its last name
	from    int     // the offset of the whole key
	prefix  string  // the names before the last
	value   literal
	items   []literal
	between string // separates it from the field before it
}

func (f tomlField) exists() bool { return f.key.to > 0 }

type tomlTable struct {
	exists bool
	keys   []literal
	texts  []string
}

// A keyPath holds the names of the tables around a key, and of the key itself. Names from other
// lines have no position.
type keyPath []literal

// table returns the table with the given name, or nil if it is not one of headers or variables.
func (f *tomlForm) table(name string) *tomlTable {
	switch name {
	case tomlHeaders:
		return &f.headers
	case tomlEnvHeaders:
		return &f.envHeaders
	case tomlEnv:
		return &f.env
	}
	return nil
}

// addKey records a key below an entry. path begins with the name of the entry.
func (f *tomlForm) addKey(path keyPath) {
	field := path[1]
	if t := f.table(field.value); t != nil {
		if t.exists = true; field.to > 0 {
			f.tables = append(f.tables, field)
		}
	}
	for _, l := range path[1:] {
		// A name with escapes could not be restored.
		f.odd = f.odd || l.to > 0 && l.to-l.from != len(l.value) && l.to-l.from != len(l.value)+2
	}
	f.otherHeaders = f.otherHeaders || field.value == "headers"
	f.login = f.login || field.value == "scopes" || strings.HasPrefix(field.value, "oauth") || strings.HasPrefix(field.value, "auth")
}

// addValue records a value below an entry, unless it is a table. text is the value if it is a text.
func (f *tomlForm) addValue(path keyPath, isText bool, text string) {
	t := f.table(path[1].value)
	switch {
	case t == nil:
	case len(path) != 3 || !isText:
		f.odd = true
	default:
		t.keys, t.texts = append(t.keys, path[2]), append(t.texts, text)
	}
}

// setField stores a field with the given name, if it matters for a remote server.
func (f *tomlForm) setField(name string, field tomlField) {
	switch {
	case isAddress(name):
		f.odd = f.odd || f.url.exists() || name != "url"
		f.url = field
	case name == "command":
		f.command = field
	case name == "args":
		f.args = field
	case name == tomlBearer:
		f.bearer = field
	case name == tomlEnvVars:
		f.envVars = field
	}
}

// remote returns f as a remoteForm, with the variables and the fields that [remoteForm.problem] checks.
func (f *tomlForm) remote() *remoteForm {
	r := &remoteForm{login: f.login, oddHeaders: f.odd}
	if f.url.exists() {
		r.address = member{f.url.key, f.url.value}
	}
	if f.env.exists || f.envVars.exists() {
		r.env = member{key: literal{span: span{0, 1}}} // only whether it exists matters
	}
	for i, name := range f.env.keys {
		r.variables = append(r.variables, member{name, literal{value: f.env.texts[i]}})
	}
	r.headerNames = slices.Concat(f.headers.keys, f.envHeaders.keys)
	if f.bearer.exists() {
		r.headerNames = append(r.headerNames, literal{value: "Authorization"})
	}
	return r
}

// problem returns the reason why the remote server cannot be wrapped, or "".
func (f *tomlForm) problem() string {
	switch {
	case f == nil:
		return ""
	case f.args.exists():
		return hasArgs
	case f.otherHeaders:
		return "it is remote and has headers, which Codex calls http_headers: rename them; if the file is of another client, put them into server.headers of attache's configuration"
	case f.headers.exists && f.envHeaders.exists:
		return "it is remote, with http_headers and env_http_headers: keep one of them, and put the others into server.headers of attache's configuration"
	case f.headers.exists && len(f.headers.keys) == 0 || f.envHeaders.exists && len(f.envHeaders.keys) == 0:
		return "it is remote, and its table of headers is empty: remove that"
	case f.bearer.exists() && f.bearer.items != nil:
		return "it is remote, and its bearer_token_env_var is not a text"
	}
	return ""
}

// rename returns the edit that changes the name of a key and keeps its quotes.
func (d *Document) rename(key literal, name string) splice {
	raw := d.raw(key.span)
	return splice{key.span, strings.Replace(raw, key.value, name, 1)}
}

// wrapRemoteTOML returns the edits that put attache in front of the remote server e.
func (e *Entry) wrapRemoteTOML(d *Document, l Launch) []splice {
	f := e.toml
	flags := slices.Clone(l.Flags)
	if f.bearer.exists() {
		flags = append(flags, bearerFlag, f.bearer.value.value)
	}
	items := append(quoteAll(slices.Concat(l.Args, flags, []string{"--"})), d.raw(f.url.value.span))
	edits := []splice{
		{span{f.url.from, f.url.from}, f.insertedText(f.url, l.Command)},
		d.rename(f.url.key, "args"),
		{f.url.value.span, "[" + strings.Join(items, ", ") + "]"},
	}
	if f.bearer.exists() {
		edits = append(edits, d.rename(f.bearer.key, tomlEnvVars), splice{f.bearer.value.span, f.passedVariables(d.raw(f.bearer.value.span))})
	}
	for _, t := range f.tables {
		edits = append(edits, d.rename(t, tomlEnv))
	}
	for _, k := range f.headers.keys {
		edits = append(edits, d.rename(k, HeaderPrefix+headerVariable(k.value)))
	}
	for _, k := range f.envHeaders.keys {
		edits = append(edits, d.rename(k, EnvHeaderPrefix+headerVariable(k.value)))
	}
	return edits
}

// insertedText returns the text of the fields that wrapping adds in front of the field args.
func (f *tomlForm) insertedText(args tomlField, command string) string {
	text := args.prefix + "command = " + quote(command) + args.between
	if f.envHeaders.exists && !f.bearer.exists() {
		text += args.prefix + tomlEnvVars + " = " + f.passedVariables("") + args.between
	}
	return text
}

// passedVariables returns the list of the variables that Codex must pass to attache. bearer is the literal
// with the name of the variable that holds the token, or "".
func (f *tomlForm) passedVariables(bearer string) string {
	var names []string
	if bearer != "" {
		names = append(names, bearer)
	}
	return "[" + strings.Join(append(names, quoteAll(f.envHeaders.texts)...), ", ") + "]"
}

// unwrapRemoteTOML returns the edits that remove attache from in front of the remote server e, or the
// reason why they are not possible. dashes is the index of the argument "--".
func (e *Entry) unwrapRemoteTOML(d *Document, dashes int) (edits []splice, why string) {
	f := e.toml
	before, why := f.unwrapped(e.Args[:dashes])
	if why != "" {
		return nil, why
	}
	edits, ok := e.withoutInserted(d, before)
	if len(e.Args) != dashes+2 || !ok {
		return nil, "it was edited since attache wrote it: correct it by hand"
	}
	edits = append(edits, d.rename(f.args.key, "url"), splice{f.args.value.span, d.raw(e.args.items[dashes+1].span)})
	if before.bearer.exists() {
		if !before.passes(f.envVars) {
			return nil, "its env_vars were edited since attache wrote them: correct it by hand"
		}
		edits = append(edits, d.rename(f.envVars.key, tomlBearer), splice{f.envVars.value.span, d.raw(f.envVars.items[0].span)})
	}
	name := tomlHeaders
	if before.envHeaders.exists {
		name = tomlEnvHeaders
	}
	for _, t := range f.tables {
		edits = append(edits, d.rename(t, name))
	}
	for _, k := range slices.Concat(before.headers.keys, before.envHeaders.keys) {
		variable := strings.TrimPrefix(strings.TrimPrefix(k.value, EnvHeaderPrefix), HeaderPrefix)
		edits = append(edits, d.rename(k, HeaderOf(variable)))
	}
	return edits, ""
}

// withoutInserted returns the edits that remove the fields that wrapping added to e, whose form without
// attache is before. Codex writes them behind args, and other programs print them in other ways. ok is
// false if that is not possible.
func (e *Entry) withoutInserted(d *Document, before tomlForm) (edits []splice, ok bool) {
	f := e.toml
	text := before.insertedText(f.args, e.Command)
	if from := f.args.from - len(text); from >= 0 && d.raw(span{from, f.args.from}) == text {
		return []splice{{span{from, f.args.from}, ""}}, true
	}
	fields := []tomlField{f.command}
	if before.envHeaders.exists && !before.bearer.exists() {
		if fields = append(fields, f.envVars); !before.passes(f.envVars) {
			return nil, false
		}
	}
	for _, field := range fields {
		line := span{bytes.LastIndexByte(d.data[:field.from], '\n') + 1, len(d.data)}
		if length := bytes.IndexByte(d.data[field.value.to:], '\n'); length >= 0 {
			line.to = field.value.to + length + 1
		}
		if strings.TrimSpace(d.raw(span{line.from, field.from})+d.raw(span{field.value.to, line.to})) != "" {
			return nil, false // in an inline table, or with a comment
		}
		edits = append(edits, splice{line, ""})
	}
	return edits, true
}

// passes reports whether field has the variables that Codex must pass to attache.
func (f *tomlForm) passes(field tomlField) bool {
	want := slices.Clone(f.envHeaders.texts)
	if f.bearer.exists() {
		want = append(want, f.bearer.items[0].value)
	}
	var got []string
	for _, item := range field.items {
		got = append(got, item.value)
	}
	slices.Sort(want)
	slices.Sort(got)
	return slices.Equal(want, got)
}

// unwrapped returns the form without attache, in which the variables of f are headers again, or the
// reason why that is not possible. flags are attache's flags.
func (f *tomlForm) unwrapped(flags []string) (before tomlForm, why string) {
	for i, k := range f.env.keys {
		t := &before.headers
		switch {
		case strings.HasPrefix(k.value, EnvHeaderPrefix):
			t = &before.envHeaders
		case !strings.HasPrefix(k.value, HeaderPrefix):
			return before, "its env has variables that are not headers, which a remote server has no use for: remove them first"
		}
		t.exists, t.keys, t.texts = true, append(t.keys, k), append(t.texts, f.env.texts[i])
	}
	if before.headers.exists && before.envHeaders.exists || f.env.exists && len(f.env.keys) == 0 {
		return before, "its env is not as attache wrote it: correct it by hand"
	}
	if i := slices.Index(flags, bearerFlag); i >= 0 && i+1 < len(flags) {
		if len(f.envVars.items) == 0 || f.envVars.items[0].value != flags[i+1] {
			return before, "its env_vars do not have the variable of " + bearerFlag + ": correct it by hand"
		}
		before.bearer = f.envVars
	}
	return before, ""
}

// withoutBearer returns own, attache's arguments, without the flag that replaces
// bearer_token_env_var.
func withoutBearer(own []string) []string {
	if i := slices.Index(own, bearerFlag); i >= 0 && i+1 < len(own) {
		return slices.Concat(own[:i], own[i+2:])
	}
	return own
}
