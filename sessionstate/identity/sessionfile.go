package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/sessionstate"
)

// ErrSessionFile means that the session file is missing, may be read or written by others, or
// is not a session file. Nothing in it is used, and the session has no principal, until
// whoever writes the file mends it; the text says how.
var ErrSessionFile = errors.New("session file cannot be used")

// A SessionFile is the content of a session file. All fields but one may be empty.
type SessionFile struct {
	// Principal is who the session acts for, nil if the file names nobody: trust
	// alone is nobody. Its KeyID is "session file".
	Principal *sessionstate.Principal
	// Trust is "direct", "sandboxed" or empty, for sessions with and without a
	// principal.
	Trust string
	// Workspace is an absolute path, WorkspaceID the durable id of the workspace,
	// and Session the session key.
	Workspace, WorkspaceID, Session string
}

// ReadSessionFile reads the file in which the host that starts attache says whose
// session it is:
//
//	user: ada
//	tenant: acme
//	email: ada@acme.example
//	roles: [developer]
//	permissions: [records:read]
//	plan: pro
//	scope: acme/platform
//	trust: direct
//	workspace: /home/ada/src/api
//	workspace_id: ws-42
//	session: 7c1f
//
// in YAML or the same in JSON, read strictly: a name that is not known, one twice
// and a number for text are errors. An unknown word for trust means sandboxed.
//
// Whoever can write the file can be any principal, so it must be a regular file and
// not a symbolic link, belong to the user attache runs as or to root, be closed to
// group and others, and have at most 64 KiB. (Windows has no such modes: there the
// directory has to keep others out.) It is read once; call again to read it again.
//
// Errors wrap [ErrSessionFile], and fs.ErrNotExist where there is no such file;
// none quotes the values in it.
func ReadSessionFile(path string) (SessionFile, error) {
	data, _, err := sessionFile.read(path)
	if err != nil {
		return SessionFile{}, err
	}
	s, err := parseSession(data)
	if err != nil {
		return SessionFile{}, sessionFile.content(path, err)
	}
	return s, nil
}

// sessionYAML is the shape of the file.
type sessionYAML struct {
	User        word   `yaml:"user"`
	Tenant      word   `yaml:"tenant"`
	Email       word   `yaml:"email"`
	Roles       []word `yaml:"roles"`
	Permissions []word `yaml:"permissions"`
	Plan        word   `yaml:"plan"`
	Scope       word   `yaml:"scope"`
	Trust       word   `yaml:"trust"`
	Workspace   word   `yaml:"workspace"`
	WorkspaceID word   `yaml:"workspace_id"`
	Session     word   `yaml:"session"`
}

const knownSession = "user, tenant, email, roles, permissions, plan, scope, trust, workspace, workspace_id, session"

// parseSession reads the text of a session file.
func parseSession(data []byte) (SessionFile, error) {
	// The YAML library reads most of JSON, but not its escapes and tabs as JSON
	// means them.
	var w sessionYAML
	var err error
	if text := bytes.TrimPrefix(data, []byte("\ufeff")); json.Valid(text) && utf8.Valid(text) {
		w, err = sessionJSON(text)
	} else {
		err = decode(data, &w, knownSession)
	}
	if err != nil {
		return SessionFile{}, err
	}
	return w.session()
}

// session checks what was written and returns it.
func (w sessionYAML) session() (SessionFile, error) {
	if err := w.checkUnicode(); err != nil {
		return SessionFile{}, err
	}
	s := SessionFile{
		Trust:     sessionstate.NormalizeTrust(w.Trust.text),
		Workspace: w.Workspace.text, WorkspaceID: w.WorkspaceID.text, Session: w.Session.text,
	}
	if s.Workspace != "" && !filepath.IsAbs(s.Workspace) {
		return SessionFile{}, &placeError{w.Workspace.at, "workspace is no absolute path: write it from the root on"}
	}
	p := &sessionstate.Principal{
		KeyID: "session file", User: w.User.text, Tenant: w.Tenant.text, Email: w.Email.text,
		Roles: texts(w.Roles), Permissions: texts(w.Permissions),
		Plan: w.Plan.text, Scope: w.Scope.text, Trust: s.Trust,
	}
	switch {
	case p.User+p.Tenant+p.Email+p.Plan+p.Scope != "" || p.Roles != nil || p.Permissions != nil:
		s.Principal = p
	case s == SessionFile{}:
		// Most often one that was read while it was being written.
		return SessionFile{}, errors.New("it says nothing: write at least one of " + knownSession)
	}
	return s, nil
}

// checkUnicode refuses escapes that are half a character: whichever half, they
// read as the same replacement character.
func (w sessionYAML) checkUnicode() error {
	single, several := w.members()
	for name, one := range single {
		if strings.ContainsRune(one.text, utf8.RuneError) {
			return fmt.Errorf("%s has something that is no character: write it anew", name)
		}
	}
	for name, many := range several {
		if slices.ContainsFunc(*many, func(one word) bool { return strings.ContainsRune(one.text, utf8.RuneError) }) {
			return fmt.Errorf("%s has something that is no character: write it anew", name)
		}
	}
	return nil
}

// sessionJSON reads data, which is valid JSON. Names count exactly and once:
// decoding into a struct would take "User" for "user", and the last of two members
// for the only one.
func sessionJSON(data []byte) (w sessionYAML, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return w, errors.New("it is not an object: write the facts as its members")
	}
	single, several := w.members()
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return w, errors.New("it is not JSON that can be read: correct it")
		}
		name, _ := token.(string)
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return w, errors.New("it is not JSON that can be read: correct it")
		}
		one, many := single[name], several[name]
		delete(single, name)
		delete(several, name)
		switch {
		case one != nil:
			*one, err = jsonWord(name, raw)
		case many != nil:
			*many, err = jsonWords(name, raw)
		case strings.Contains(", "+knownSession+", ", ", "+name+", "):
			err = fmt.Errorf("%s is there twice: take one out", name)
		default:
			err = fmt.Errorf("unknown member %s: known are %s", quote(name), knownSession)
		}
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

// members returns where what is written under each name goes.
func (w *sessionYAML) members() (single map[string]*word, several map[string]*[]word) {
	return map[string]*word{
			"user": &w.User, "tenant": &w.Tenant, "email": &w.Email, "plan": &w.Plan, "scope": &w.Scope, "trust": &w.Trust,
			"workspace": &w.Workspace, "workspace_id": &w.WorkspaceID, "session": &w.Session,
		}, map[string]*[]word{
			"roles": &w.Roles, "permissions": &w.Permissions,
		}
}

// jsonWord reads text. null is absent, as in YAML.
func jsonWord(name string, raw []byte) (word, error) {
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil {
		return word{}, fmt.Errorf("%s is no text: put it in quotes", name)
	}
	if text == nil {
		return word{}, nil
	}
	if !isWord(*text) {
		return word{}, fmt.Errorf("%s has line breaks, control characters or space around it: take them out", name)
	}
	return word{text: *text}, nil
}

func jsonWords(name string, raw []byte) ([]word, error) {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return nil, fmt.Errorf("%s is no list: write it as [\"...\"]", name)
	}
	var words []word
	for _, element := range elements {
		w, err := jsonWord(name, element)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	return words, nil
}
