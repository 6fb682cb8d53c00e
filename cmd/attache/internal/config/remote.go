package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/proxy/remote"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// HeaderPrefix begins the names of variables that hold headers for the remote server:
// ATTACHE_HEADER_X_API_KEY is X-Api-Key.
const HeaderPrefix = clientconfig.HeaderPrefix

// RemoteSettings say how a remote server is reached.
type RemoteSettings struct {
	URL     string // empty: the server is a command
	Headers map[string]Secret
	// CA, Cert and Key are absolute paths of PEM files; empty for none.
	CA, Cert, Key string
	// Connect and FirstByte bound how long a connection and the beginning of an answer
	// may take; 0 for no bound.
	Connect, FirstByte time.Duration
	OAuth              OAuthSettings
}

// A Secret is a text, or where it is. At most one member is set.
type Secret struct {
	Text string
	Env  string // a variable's name
	File string // absolute
}

func remoteOptions(s *Settings) []option {
	r := &s.Server.Remote
	return []option{
		{Key: "server.url", Help: "the address of a remote server (Streamable HTTP), instead of a command behind \"--\"", value: serverAddress{&r.URL}},
		{Key: "server.headers", Help: "headers for the remote server; a value is a text, {env: VARIABLE} or {file: FILE}, which is read again when the server refuses it", value: headers{&r.Headers}},
		{Key: "server.tls.ca", Help: "PEM file of authorities that are trusted beside the system's", value: file{&r.CA}},
		{Key: "server.tls.cert", Help: "PEM file of the certificate that is shown to the remote server", value: file{&r.Cert}},
		{Key: "server.tls.key", Help: "PEM file of its key", value: file{&r.Key}},
		{Key: "server.timeouts.connect", Help: "how long a connection to the remote server may take", value: duration{&r.Connect, time.Millisecond}},
		{Key: "server.timeouts.first_byte", Help: "how long the remote server may take to begin an answer; 0s: any time", value: duration{&r.FirstByte, 0}},
	}
}

// IsURL reports whether a command is the address of a remote server.
func IsURL(command []string) bool { return len(command) > 0 && strings.Contains(command[0], "://") }

// serverAddress is the URL of a remote server.
type serverAddress struct{ to *string }

func (v serverAddress) set(s, _ string) error {
	if err := remote.CheckURL(s); err != nil {
		return err
	}
	*v.to = s
	return nil
}

func (v serverAddress) String() string         { return *v.to }
func (v serverAddress) shown() string          { return ShownAddress(*v.to) }
func (v serverAddress) schema() map[string]any { return address{}.schema() }

// headers are names and values of headers. The values are often secrets, so they are
// not shown.
type headers struct{ to *map[string]Secret }

func (v headers) String() string {
	var all []string
	for name, value := range *v.to {
		all = append(all, name+": "+value.String())
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ", ") + "}"
}

// String returns where a secret is, and not the secret.
func (s Secret) String() string {
	switch {
	case s.Env != "":
		return "{env: " + s.Env + "}"
	case s.File != "":
		return "{file: " + s.File + "}"
	case s.Text != "":
		return "[hidden]"
	}
	return ""
}

func secretSchema() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1}
	from := func(key string) map[string]any {
		return map[string]any{"type": "object", "properties": map[string]any{key: text}, "required": []string{key}, "additionalProperties": false}
	}
	return map[string]any{"anyOf": []any{text, from("env"), from("file")}}
}

func (v headers) schema() map[string]any {
	return map[string]any{
		"type":                 "object",
		"propertyNames":        map[string]any{"pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"},
		"additionalProperties": secretSchema(),
	}
}

func (v headers) read(r *reader, key string, n ast.Node) {
	fields, ok := r.fields(n, key)
	if !ok {
		return
	}
	all := map[string]Secret{}
	for _, f := range fields {
		name := http.CanonicalHeaderKey(f.name)
		if err := checkHeaderName(name); err != nil {
			r.problems.Add(f.at, "%s: %v", key, err)
			continue
		}
		if _, twice := all[name]; twice {
			r.problems.Add(f.at, "%s: %s is there twice: keep one", key, name)
			continue
		}
		all[name] = r.secret(key+"."+f.name, f)
	}
	*v.to = all
}

// secret reads a text, or where it is.
func (r *reader) secret(key string, f field) (s Secret) {
	if f.value == nil || f.value.Type() != ast.MappingType && f.value.Type() != ast.MappingValueType {
		r.value(key, text{&s.Text, checkHeaderValue}, f)
		return s
	}
	fields, ok := r.fields(f.value, key)
	if !ok {
		return s
	}
	if len(fields) != 1 {
		r.problems.Add(f.at, "%s: write a text, {env: VARIABLE} or {file: FILE}", key)
		return s
	}
	switch one := fields[0]; one.name {
	case "env":
		r.value(key+".env", text{&s.Env, tokenName}, one)
	case "file":
		r.value(key+".file", file{&s.File}, one)
	default:
		r.problems.Add(one.at, "%s: unknown key %q: write a text, {env: VARIABLE} or {file: FILE}", key, one.name)
	}
	return s
}

// ownHeaders are those that the transport sets.
func ownHeaders() []string {
	return []string{"Accept", "Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "Idempotency-Key",
		"Last-Event-Id", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key"}
}

// checkHeaderName accepts the name of a header that may be set.
func checkHeaderName(name string) error {
	strange := strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
	switch {
	case name == "" || strange:
		return fmt.Errorf("%q is no name of a header", name)
	case slices.Contains(ownHeaders(), name) || strings.HasPrefix(name, "Mcp-"):
		return fmt.Errorf("%s is set by attache: remove it", name)
	}
	return nil
}

// checkHeaderValue accepts the value of a header. It never shows it.
func checkHeaderValue(s string) error {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7F {
			return errors.New("has a control character in it: write one line")
		}
	}
	if strings.TrimSpace(s) == "" {
		return errors.New("is empty: write a value, or remove the header")
	}
	return nil
}

// headersOf returns the headers in the environment.
func headersOf(env []string) (http.Header, error) {
	all := http.Header{}
	for _, entry := range env {
		variable, value, _ := strings.Cut(entry, "=")
		name, ok := strings.CutPrefix(variable, HeaderPrefix)
		if !ok || value == "" {
			continue
		}
		name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
		if err := cmp.Or(checkHeaderName(name), checkHeaderValue(value)); err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		all[name] = []string{value}
	}
	return all, nil
}

// target settles which remote server the settings are for. command stands behind "--".
func (s *Settings) target(command []string) {
	outside := s.Server.Remote
	switch {
	case IsURL(command):
		s.Server.Remote.URL = command[0]
	case len(command) > 0:
		s.Server.Remote.URL = ""
	}
	s.keepApart(outside)
}

// keepApart takes the credentials out of the settings that were there before the address
// was settled, unless they are for the same origin: a token is for one server.
func (s *Settings) keepApart(before RemoteSettings) {
	r := &s.Server.Remote
	if sameOrigin(before.URL, r.URL) {
		return
	}
	if before.Headers != nil && maps.Equal(before.Headers, r.Headers) {
		if r.URL != "" {
			s.Warnings.Add(s.Origin("server.headers"), "server.headers is not for this server: write it beside the server.url that it is for, or under servers")
		}
		r.Headers = nil
	}
	if before.Cert == r.Cert {
		r.Cert, r.Key = "", ""
	}
	if before.OAuth.equal(&r.OAuth) && !r.OAuth.isEmpty() {
		if r.URL != "" {
			s.Warnings.Add(s.Origin("server.oauth"), "server.oauth is not for this server: write it beside the server.url that it is for, or under servers")
		}
		r.OAuth = defaultOAuth()
	}
}

// sameOrigin reports whether two addresses have one scheme, host and port.
func sameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	v, err2 := url.Parse(b)
	return err == nil && err2 == nil && u.Scheme == v.Scheme && strings.EqualFold(u.Host, v.Host)
}

// Header returns the headers for the remote server, of the settings and of
// the environment, which count more. Files are read each time: they may be replaced.
func (r *RemoteSettings) Header(p cli.Process) (http.Header, error) {
	all, err := headersOf(p.Env)
	if err != nil {
		return nil, err
	}
	for name, secret := range r.Headers {
		if all[name] != nil {
			continue
		}
		value, err := secret.value(p)
		if err != nil {
			return nil, fmt.Errorf("server.headers.%s: %w", name, err)
		}
		all[name] = []string{value}
	}
	return all, nil
}

// value returns the text of a secret.
func (s Secret) value(p cli.Process) (string, error) {
	switch {
	case s.Env != "":
		value := strings.TrimSpace(p.Getenv(s.Env))
		if value == "" {
			return "", fmt.Errorf("the variable %s is not set: set it, or remove what names it", s.Env)
		}
		return value, checkHeaderValue(value)
	case s.File != "":
		text, _, err := textfile.Read(s.File, textfile.Rules{Max: 64 << 10, Closed: 0o077})
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.File, err)
		}
		value := strings.TrimSpace(string(text))
		return value, checkHeaderValue(value)
	}
	return s.Text, nil
}

// secrets returns the values of headers, and what stands behind the first space of one,
// as a token stands behind "Bearer".
func (r *RemoteSettings) secrets(p cli.Process) (all []string) {
	if secret, err := r.OAuth.ClientSecret.value(p); err == nil && secret != "" {
		all = append(all, secret)
	}
	h, _ := r.Header(p) // mistakes in them are reported where they are used
	for name := range h {
		value := h.Get(name)
		all = append(all, value)
		if _, token, ok := strings.Cut(value, " "); ok {
			all = append(all, token)
		}
	}
	return all
}

// CommandOr returns what is behind attache: the command given, or the address that the
// settings have in its place; nil if there is neither.
func (s *Settings) CommandOr(given []string) []string {
	if len(given) == 0 && s.Server.Remote.URL != "" {
		return []string{s.Server.Remote.URL}
	}
	return given
}
