package clientconfig

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"

	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
)

const (
	// HeaderPrefix is the prefix of the variables that hold the headers of a remote server. The rest
	// of the name is the header's name, with _ for - and __ for _.
	HeaderPrefix = "ATTACHE_HEADER_"
	// EntryVariable holds the original key of the address and the original type of a wrapped entry,
	// if they were not "url" and "http". Only Unwrap reads it.
	EntryVariable = "ATTACHE_ENTRY"
)

// A remoteForm holds the members of a JSON entry for a remote server, wrapped or not.
type remoteForm struct {
	address     member // its key and its URL
	kind        member // "type"
	headers     member // the object of headers
	env         member // the object of variables
	headerNames []literal
	variables   []member
	command     member
	args        member
	all         []member // all members, in their order
	nulls       []member // addresses, headers and variables that are null
	transport   string   // "transport" or "transportType", which some clients read in place of the type
	login       bool     // the client logs in to the server by itself
	repeated    bool     // a member occurs twice
	oddHeaders  bool     // a header's value is not a string
	variable    bool     // a header's value has a variable, ${NAME}
	escaped     bool     // unwrapRemoteJSON would write a string that wrapRemoteJSON replaces in another way
}

// A member is a key and its value. The zero value means that there is none.
type member struct{ key, value literal }

func (m member) exists() bool { return m.key.to > 0 }

func memberOf(m hujson.ObjectMember) member {
	return member{
		literal{span{m.Name.StartOffset, m.Name.EndOffset}, nameOf(m)},
		literal{span{m.Value.StartOffset, m.Value.EndOffset}, textOf(m.Value)},
	}
}

// checkEscapes sets f.escaped if v, a string that wrapRemoteJSON replaces, could not be restored.
func (f *remoteForm) checkEscapes(v hujson.Value) {
	l, ok := v.Value.(hujson.Literal)
	f.escaped = f.escaped || ok && l.Kind() == '"' && string(l) != quote(textOf(v))
}

// readRemote reads the members of an entry that matter for a remote server.
func readRemote(object *hujson.Object) *remoteForm {
	f := &remoteForm{}
	addresses := 0
	set := func(to *member, m hujson.ObjectMember) {
		f.repeated = f.repeated || to.exists()
		*to = memberOf(m)
	}
	for _, m := range object.Members {
		name := nameOf(m)
		f.all = append(f.all, memberOf(m))
		if isNull(m.Value) && (isAddress(name) || name == "headers" || name == "env") {
			f.nulls = append(f.nulls, memberOf(m))
		}
		switch {
		case isAddress(name):
			addresses++
			f.repeated = f.repeated || addresses > 1
			if !isNull(m.Value) { // clients write null if there is no address
				f.address = memberOf(m)
				f.checkEscapes(m.Name)
			}
		case name == "type":
			set(&f.kind, m)
			f.checkEscapes(m.Value)
		case name == "transport" || name == "transportType": // FastMCP, older Cline
			f.transport = textOf(m.Value)
		case name == "headers":
			set(&f.headers, m)
			f.checkEscapes(m.Name)
			f.readHeaders(m.Value)
		case name == "env" || name == "environment":
			set(&f.env, m)
			if inner, ok := m.Value.Value.(*hujson.Object); ok {
				for _, v := range inner.Members {
					f.variables = append(f.variables, memberOf(v))
				}
			}
		case name == "command":
			set(&f.command, m)
		case name == "args":
			set(&f.args, m)
		case isLogin(m):
			f.login = true
		}
	}
	return f
}

// isLogin reports whether m says that the client logs in to the server or has a token for it. The value false
// says that it does not.
func isLogin(m hujson.ObjectMember) bool {
	key, no := nameOf(m), m.Value.Value.Kind() == 'f'
	return !no && (strings.HasPrefix(key, "oauth") || strings.HasPrefix(key, "auth") || strings.HasPrefix(key, "bearer") || key == "headersHelper")
}

func (f *remoteForm) readHeaders(v hujson.Value) {
	inner, ok := v.Value.(*hujson.Object)
	if !ok {
		f.oddHeaders = true
		return
	}
	for _, h := range inner.Members {
		m := memberOf(h)
		f.oddHeaders = f.oddHeaders || h.Value.Value.Kind() != '"'
		f.variable = f.variable || strings.Contains(m.value.value, "${")
		f.headerNames = append(f.headerNames, m.key)
		f.checkEscapes(h.Name)
	}
}

func isAddress(key string) bool {
	return key == "url" || key == "serverUrl" || key == "httpUrl"
}

// otherAddress returns the key of the server's URL if the entry has it only under a key that wrap does
// not know, such as baseUrl of mcporter, or "".
func (f *remoteForm) otherAddress() string {
	for _, m := range f.all {
		key := strings.ToLower(m.key.value)
		if (strings.HasSuffix(key, "url") || strings.HasSuffix(key, "uri")) && isHTTP(m.value.value) && !f.address.exists() {
			return m.key.value
		}
	}
	return ""
}

// problem returns the reason why the remote server cannot be wrapped, or "".
func (f *remoteForm) problem(client *mcpclient.Client) string {
	u, secret, err := parseAddress(f.address.value.value)
	switch {
	case f.repeated:
		return "a part of it appears twice, and clients differ in which they take: remove one"
	case client != nil && client.Name == "qwen" && f.address.key.value == "url":
		return `it is remote, and Qwen Code uses HTTP+SSE with a "url", whatever its type: write "httpUrl" if the server speaks Streamable HTTP`
	case f.isSSE(u):
		return "it uses the older transport HTTP+SSE, which attache does not speak: use its Streamable HTTP address"
	case client != nil && client.Name == "gemini" && f.address.key.value == "url" && f.kind.value.value == "":
		// Older versions use HTTP+SSE, and newer ones try Streamable HTTP first.
		return `it is remote, and Gemini CLI uses either transport with it: write "http" as its type if the server speaks Streamable HTTP`
	case f.transport != "":
		return "it is remote, and its transport says so, which wrap does not change: remove that, or write it as type"
	case !f.address.exists() || f.address.value.value == "":
		return "it is remote and has no address: write one"
	case !isHTTP(f.address.value.value):
		return "it is remote, and its address does not begin with https:// or http://"
	case err != nil:
		return "it is remote, and its address is not valid: correct it"
	case u.User != nil:
		return "it is remote, and its address has a user name or a password in it: write them as an Authorization header"
	case secret:
		return "it is remote, and its address has a secret in it, or a UUID that may be one, which other users could read in the process list: write it as a header, or the address as server.url of a file for --config"
	case f.login:
		return "it is remote, and the client logs in to it as the entry says, which attache does not: to wrap it, remove that, and use \"attache login\" or server.headers"
	case f.env.exists():
		return "it is remote and has variables: remove env, which clients do not use there"
	case f.args.exists():
		return hasArgs
	case f.command.exists(): // an object; classify refuses a text
		return "it has a command and a " + f.address.key.value + ": remove one"
	case f.oddHeaders:
		return "it is remote, and its headers are not all texts"
	case f.escaped:
		return "it is remote, and a key, its type or the name of a header is written with escapes, which unwrap could not give back: write the plain characters"
	case f.kind.exists() && (f.kind.value.value == "" || strings.ContainsFunc(f.kind.value.value, unicode.IsSpace)): // entryNote holds one word
		return "it is remote, and its type is written in a way that unwrap could not give back: write it as your client documents it"
	}
	for i, h := range f.headerNames {
		if IsOwnHeader(h.value) && !IsRepeatedHeader(h.value) {
			return "it is remote, and it sets a header that attache sets itself: remove that"
		}
		if !isPlainHeader(h.value) || slices.ContainsFunc(f.headerNames[:i], func(o literal) bool { return strings.EqualFold(o.value, h.value) }) {
			return "it is remote, and the name of a header cannot become that of a variable: put the header into server.headers of attache's configuration"
		}
	}
	return ""
}

// hasArgs is the reason why a remote server with arguments is not wrapped: attache's own arguments
// would be mixed with them.
const hasArgs = "it is remote and has args: remove them, which clients do not use there"

// advice returns a note for the user about the wrapped entry in a file of client, or "". The clients
// that wrap knows replace variables in env as they do in headers; others, such as mcporter, may not.
func (f *remoteForm) advice(client *mcpclient.Client) string {
	if client == nil && f.variable {
		return "a header has a variable in it: if your client does not replace it in env too, put the header into server.headers of attache's configuration"
	}
	if slices.ContainsFunc(f.headerNames, func(h literal) bool { return strings.EqualFold(h.value, "authorization") }) {
		return ""
	}
	return "it has no Authorization header: if the client had logged in to it, run \"attache login\" with its address"
}

// isSSE reports whether the client uses the transport of revision 2024-11-05 with the server at u.
func (f *remoteForm) isSSE(u *url.URL) bool {
	if kind := cmp.Or(f.kind.value.value, f.transport); kind != "" {
		return strings.EqualFold(kind, "sse")
	}
	return strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/sse")
}

// wrapRemoteJSON returns the edits that put attache in front of the remote server e. Values stay in place
// and keys change, so that unwrapRemoteJSON can restore the original bytes.
func (e *Entry) wrapRemoteJSON(d *Document, l Launch) []splice {
	f := e.remote
	items := append(quoteAll(slices.Concat(l.Args, l.Flags, []string{"--"})), d.raw(f.address.value.span))
	command, kind, env, note := quote(l.Command)+`, "args": [`+strings.Join(items, ", ")+`]`, `"stdio"`, `"env"`, f.entryNote("http")
	if d.inList(e) {
		command, kind, env, note = "["+strings.Join(append([]string{quote(l.Command)}, items...), ", ")+"]", `"local"`, `"environment"`, f.entryNote("remote")
	}
	if note != "" && !f.headers.exists() {
		command += ", " + env + ": {" + note + "}"
	}
	edits := []splice{{f.address.key.span, `"command"`}, {f.address.value.span, command}}
	if f.kind.exists() {
		edits = append(edits, splice{f.kind.value.span, kind})
	}
	if !f.headers.exists() {
		return edits
	}
	edits = append(edits, splice{f.headers.key.span, env})
	for i, h := range f.headerNames {
		name := quote(HeaderPrefix + headerVariable(h.value))
		if i == 0 && note != "" {
			name = note + ", " + name
		}
		edits = append(edits, splice{h.span, name})
	}
	if len(f.headerNames) == 0 && note != "" {
		at := f.headers.value.from + 1
		edits = append(edits, splice{span{at, at}, note})
	}
	return edits
}

// noHeaders is the word in EntryVariable for an entry with an empty object of headers.
const noHeaders = "headers"

// entryNote returns EntryVariable as a member, or "" if the entry has the usual key for its address
// and no type or the usual one.
func (f *remoteForm) entryNote(usual string) string {
	kind := cmp.Or(f.kind.value.value, usual)
	if f.address.key.value == "url" && kind == usual {
		return ""
	}
	note := f.address.key.value + " " + kind
	if f.headers.exists() && len(f.headerNames) == 0 {
		note += " " + noHeaders
	}
	return quote(EntryVariable) + ": " + quote(note)
}

// unwrapRemoteJSON returns the edits that remove attache from in front of the remote server e, or the
// reason why they are not possible. dashes is the index of the argument "--".
func (e *Entry) unwrapRemoteJSON(d *Document, dashes int) (edits []splice, why string) {
	f := e.remote
	switch {
	case f.repeated:
		return nil, "a part of it appears twice, and clients differ in which they take: remove one"
	case len(e.Args) != dashes+2 || !f.command.exists():
		return nil, "it has more than the address of a remote server after \"--\": correct it by hand"
	case f.headers.exists() && len(f.variables) > 0 && !slices.Contains(f.nulls, f.headers):
		return nil, "it has headers, and variables that would be headers again: join them by hand"
	}
	key, kind := "url", "http"
	if e.listed {
		kind = "remote"
	}
	note := slices.IndexFunc(f.variables, func(v member) bool { return v.key.value == EntryVariable })
	if note >= 0 {
		words := strings.Fields(f.variables[note].value.value)
		if len(words) < 2 || !isAddress(words[0]) {
			return nil, EntryVariable + " in its env is not as attache wrote it: correct it by hand"
		}
		key, kind = words[0], words[1]
	}
	edits = []splice{{f.command.key.span, quote(key)}, {f.command.value.span, d.raw(e.args.items[dashes+1].span)}}
	if f.kind.exists() {
		edits = append(edits, splice{f.kind.value.span, quote(kind)})
	}
	// Some clients write null for what an entry does not have.
	gone := append(slices.Clone(f.nulls), f.args)
	switch {
	case slices.Contains(f.nulls, f.env):
	case len(f.variables) == 1 && note == 0 && !strings.HasSuffix(f.variables[0].value.value, " "+noHeaders):
		gone = append(gone, f.env)
	default:
		variables, why := d.unwrapVariables(f, note)
		if why != "" {
			return nil, why
		}
		edits = append(edits, variables...)
	}
	return append(edits, d.without(f.all, gone)...), ""
}

// unwrapVariables returns the edits that turn the variables of an entry into headers again. note is
// the index of EntryVariable, or -1.
func (d *Document) unwrapVariables(f *remoteForm, note int) (edits []splice, why string) {
	if !f.env.exists() {
		return nil, ""
	}
	edits = append(edits, splice{f.env.key.span, `"headers"`})
	for i, v := range f.variables {
		name, ok := strings.CutPrefix(v.key.value, HeaderPrefix)
		switch {
		case ok:
			edits = append(edits, splice{v.key.span, quote(HeaderOf(name))})
		case i != note:
			return nil, "its env has variables that are not headers, which a remote server has no use for: remove them first"
		case i+1 < len(f.variables):
			edits = append(edits, splice{span{v.key.from, f.variables[i+1].key.from}, ""})
		case i == 0:
			edits = append(edits, splice{span{v.key.from, v.value.to}, ""})
		default:
			edits = append(edits, splice{span{f.variables[i-1].value.to, v.value.to}, ""})
		}
	}
	return edits, ""
}

// without returns the edits that remove the members in gone, each with one comma. all are the members of
// the object; at least one must stay. Comments between members stay.
func (d *Document) without(all, gone []member) (edits []splice) {
	kept := false
	for i, m := range all {
		at, between := span{}, span{}
		switch {
		case !slices.Contains(gone, m):
			kept = true
			continue
		case kept:
			at, between = span{all[i-1].value.to, m.value.to}, span{all[i-1].value.to, m.key.from}
		default:
			at, between = span{m.key.from, all[i+1].key.from}, span{m.value.to, all[i+1].key.from}
		}
		comments := withoutComma(d.raw(between))
		if strings.TrimSpace(comments) == "" {
			comments = ""
		}
		edits = append(edits, splice{at, comments})
	}
	return edits
}
