package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"

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
	Owner       ownerYAML `yaml:",inline"`
	Workspace   word      `yaml:"workspace"`
	WorkspaceID word      `yaml:"workspace_id"`
	Session     word      `yaml:"session"`
}

const knownSession = "user, tenant, email, roles, permissions, plan, scope, trust, workspace, workspace_id, session"

// parseSession reads the text of a session file.
func parseSession(data []byte) (SessionFile, error) {
	if text := bytes.TrimPrefix(data, []byte("\ufeff")); json.Valid(text) {
		data = jsonAsYAML(text)
	}
	var w sessionYAML
	if err := decode(data, &w, knownSession); err != nil {
		return SessionFile{}, err
	}
	return w.session()
}

// jsonStrings matches the strings of a JSON text.
var jsonStrings = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`) })

// jsonAsYAML returns JSON, which is valid, as YAML: but for some escapes in strings, and tabs
// between them, it is YAML already.
func jsonAsYAML(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	return jsonStrings().ReplaceAllFunc(text, func(raw []byte) []byte {
		var s string
		_ = json.Unmarshal(raw, &s) // it is valid
		return strconv.AppendQuote(nil, s)
	})
}

// session checks what was written and returns it.
func (w sessionYAML) session() (SessionFile, error) {
	s := SessionFile{
		Trust:     sessionstate.NormalizeTrust(w.Owner.Trust.text),
		Workspace: w.Workspace.text, WorkspaceID: w.WorkspaceID.text, Session: w.Session.text,
	}
	if s.Workspace != "" && !filepath.IsAbs(s.Workspace) {
		return SessionFile{}, &placeError{w.Workspace.at, "workspace is no absolute path: write it from the root on"}
	}
	p := Entry{ID: "session file", Attributes: w.Owner.attributes()}.Principal()
	switch {
	case p.User+p.Tenant+p.Email+p.Plan+p.Scope != "" || p.Roles != nil || p.Permissions != nil:
		s.Principal = p
	case s == SessionFile{}:
		// Most often one that was read while it was being written.
		return SessionFile{}, errors.New("it says nothing: write at least one of " + knownSession)
	}
	return s, nil
}
