package clientconfig

import (
	"slices"
	"strings"
)

const (
	// EnvHeaderPrefix begins the names of variables that hold the names of others, which
	// hold headers. What follows is as for HeaderPrefix.
	EnvHeaderPrefix = "ATTACHE_ENV_HEADER_"
	// bearerFlag names the variable that holds a bearer token.
	bearerFlag = "--bearer-env"
)

// The keys that Codex has for a remote server, and for one that it starts.
const (
	tomlHeaders    = "http_headers"
	tomlEnvHeaders = "env_http_headers"
	tomlBearer     = "bearer_token_env_var"
	tomlEnv        = "env"
	tomlEnvVars    = "env_vars"
)

// A tomlForm is how a remote server stands in an entry of TOML, or how it does when
// attache is in front of it. Every value stays where it is; keys change:
//
//	url = "https://..."             command = "attache"
//	                                args = ["--bearer-env", "TOKEN", "--", "https://..."]
//	bearer_token_env_var = "TOKEN"  env_vars = ["TOKEN"]
//	http_headers = {X-A = "1"}      env = {ATTACHE_HEADER_X_A = "1"}
//	env_http_headers = {X-A = "V"}  env = {ATTACHE_ENV_HEADER_X_A = "V"}, with V in env_vars
type tomlForm struct {
	url, args, bearer, envVars tomlField
	tables                     []literal // where the name of a table of headers or variables is written
	headers, envHeaders, env   tomlTable
	login, odd                 bool
	otherHeaders               bool // a table of headers that has the name of clients with JSON
}

// A tomlField is a key and its value.
type tomlField struct {
	key     literal // its last name
	from    int     // where the whole key begins
	prefix  string  // the names before the last
	value   literal
	items   []literal
	between string // separates it from a field in front of it
}

func (f tomlField) exists() bool { return f.key.to > 0 }

// A tomlTable is a table of texts.
type tomlTable struct {
	there bool
	keys  []literal
	texts []string
}

// table returns the table that is called name, nil for none that matters.
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

// name notes a key below an entry. path begins with the name of the entry.
func (f *tomlForm) name(path keyPath) {
	field := path[1]
	if t := f.table(field.value); t != nil {
		if t.there = true; field.to > 0 {
			f.tables = append(f.tables, field)
		}
	}
	for _, l := range path[1:] {
		// Only what is written as it reads can be changed and changed back.
		f.odd = f.odd || l.to > 0 && l.to-l.from != len(l.value) && l.to-l.from != len(l.value)+2
	}
	f.otherHeaders = f.otherHeaders || field.value == "headers"
	f.login = f.login || field.value == "scopes" || strings.HasPrefix(field.value, "oauth") || strings.HasPrefix(field.value, "auth")
}

// value notes a value below an entry that is no table.
func (f *tomlForm) value(path keyPath, isText bool, text string) {
	t := f.table(path[1].value)
	switch {
	case t == nil:
	case len(path) != 3 || !isText:
		f.odd = true
	default:
		t.keys, t.texts = append(t.keys, path[2]), append(t.texts, text)
	}
}

// set notes a field of an entry.
func (f *tomlForm) set(name string, field tomlField) {
	switch {
	case isAddress(name):
		f.odd = f.odd || f.url.exists() || name != "url"
		f.url = field
	case name == "args":
		f.args = field
	case name == tomlBearer:
		f.bearer = field
	case name == tomlEnvVars:
		f.envVars = field
	}
}

// remote returns what is to be known of an entry before attache is put in front of it.
func (f *tomlForm) remote() *remoteForm {
	r := &remoteForm{login: f.login, oddHeaders: f.odd}
	if f.url.exists() {
		r.address = member{f.url.key, f.url.value}
	}
	if f.env.there || f.envVars.exists() {
		r.env = member{key: literal{span: span{0, 1}}}
	}
	r.headerNames = slices.Concat(f.headers.keys, f.envHeaders.keys)
	if f.bearer.exists() {
		r.headerNames = append(r.headerNames, literal{value: "Authorization"})
	}
	return r
}

// problem says why attache is not put in front of the remote server, empty if it is.
func (f *tomlForm) problem() string {
	switch {
	case f == nil:
		return ""
	case f.args.exists():
		return hasArgs
	case f.otherHeaders:
		return "it is remote and has headers, which Codex calls http_headers: rename them, or remove them"
	case f.headers.there && f.envHeaders.there:
		return "it is remote, with http_headers and env_http_headers: keep one of them, and put the others into server.headers of attache's configuration"
	case f.headers.there && len(f.headers.keys) == 0 || f.envHeaders.there && len(f.envHeaders.keys) == 0:
		return "it is remote, and its table of headers is empty: remove that"
	case f.bearer.exists() && f.bearer.items != nil:
		return "it is remote, and its bearer_token_env_var is not a text"
	}
	return ""
}

// renamed returns the edit that puts another name in the place of a key's, in its quotes.
func (d *Document) renamed(key literal, name string) splice {
	raw := d.raw(key.span)
	return splice{key.span, strings.Replace(raw, key.value, name, 1)}
}

// wrapTOML returns the edits that put attache in front of a remote server.
func (d *Document) wrapTOML(f *tomlForm, l Launch) []splice {
	flags := slices.Clone(l.Flags)
	if f.bearer.exists() {
		flags = append(flags, bearerFlag, f.bearer.value.value)
	}
	items := append(quoteAll(slices.Concat(l.Args, flags, []string{"--"})), d.raw(f.url.value.span))
	edits := []splice{
		{span{f.url.from, f.url.from}, f.inserted(f.url, l.Command)},
		d.renamed(f.url.key, "args"),
		{f.url.value.span, "[" + strings.Join(items, ", ") + "]"},
	}
	if f.bearer.exists() {
		edits = append(edits, d.renamed(f.bearer.key, tomlEnvVars), splice{f.bearer.value.span, f.passed(d.raw(f.bearer.value.span))})
	}
	for _, t := range f.tables {
		edits = append(edits, d.renamed(t, tomlEnv))
	}
	for _, k := range f.headers.keys {
		edits = append(edits, d.renamed(k, HeaderPrefix+headerVariable(k.value)))
	}
	for _, k := range f.envHeaders.keys {
		edits = append(edits, d.renamed(k, EnvHeaderPrefix+headerVariable(k.value)))
	}
	return edits
}

// inserted returns the fields that stand in front of the arguments when attache is there.
func (f *tomlForm) inserted(args tomlField, command string) string {
	text := args.prefix + "command = " + quote(command) + args.between
	if f.envHeaders.there && !f.bearer.exists() {
		text += args.prefix + tomlEnvVars + " = " + f.passed("") + args.between
	}
	return text
}

// passed returns the list of the variables that Codex has to pass on. bearer is the one
// with the token, as it is written; empty for none.
func (f *tomlForm) passed(bearer string) string {
	var names []string
	if bearer != "" {
		names = append(names, bearer)
	}
	return "[" + strings.Join(append(names, quoteAll(f.envHeaders.texts)...), ", ") + "]"
}

// unwrapTOML returns the edits that take attache out from in front of a remote server, or
// why it stays. The argument with the index dashes is the "--".
func (d *Document) unwrapTOML(e *Entry, dashes int) ([]splice, string) {
	f := e.toml
	before, why := f.unwrapped(e.Args[:dashes])
	if why != "" {
		return nil, why
	}
	text := before.inserted(f.args, e.Command)
	from := f.args.from - len(text)
	if len(e.Args) != dashes+2 || from < 0 || d.raw(span{from, f.args.from}) != text {
		return nil, "it was edited since attache wrote it: correct it by hand"
	}
	edits := []splice{
		{span{from, f.args.from}, ""},
		d.renamed(f.args.key, "url"),
		{f.args.value.span, d.raw(e.args.items[dashes+1].span)},
	}
	if before.bearer.exists() {
		name := d.raw(f.envVars.items[0].span)
		if d.raw(f.envVars.value.span) != before.passed(name) {
			return nil, "its env_vars were edited since attache wrote them: correct it by hand"
		}
		edits = append(edits, d.renamed(f.envVars.key, tomlBearer), splice{f.envVars.value.span, name})
	}
	name := tomlHeaders
	if before.envHeaders.there {
		name = tomlEnvHeaders
	}
	for _, t := range f.tables {
		edits = append(edits, d.renamed(t, name))
	}
	for _, k := range slices.Concat(before.headers.keys, before.envHeaders.keys) {
		edits = append(edits, d.renamed(k, headerName(k.value)))
	}
	return edits, ""
}

// headerName returns the header that a variable stands for.
func headerName(variable string) string {
	return HeaderOf(strings.TrimPrefix(strings.TrimPrefix(variable, EnvHeaderPrefix), HeaderPrefix))
}

// unwrapped returns the form without attache, of which the variables of f are the headers,
// or why it cannot be told. flags are attache's own.
func (f *tomlForm) unwrapped(flags []string) (before tomlForm, why string) {
	for i, k := range f.env.keys {
		t := &before.headers
		switch {
		case strings.HasPrefix(k.value, EnvHeaderPrefix):
			t = &before.envHeaders
		case !strings.HasPrefix(k.value, HeaderPrefix):
			return before, "its env has variables that are no headers, which a remote server has no use for: remove them first"
		}
		t.there, t.keys, t.texts = true, append(t.keys, k), append(t.texts, f.env.texts[i])
	}
	if before.headers.there && before.envHeaders.there || f.env.there && len(f.env.keys) == 0 {
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

// withoutBearer returns attache's own arguments without the flag that stands for
// bearer_token_env_var.
func withoutBearer(own []string) []string {
	if i := slices.Index(own, bearerFlag); i >= 0 && i+1 < len(own) {
		return slices.Concat(own[:i], own[i+2:])
	}
	return own
}
