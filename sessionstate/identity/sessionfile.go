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
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A SessionFile is the content of a session file. At least one field is set.
type SessionFile struct {
	// Principal is the person for whom the session acts, nil if the file names nobody; trust
	// alone names nobody. Its KeyID is "session file".
	Principal *sessionstate.Principal
	// Trust is "direct", "sandboxed" or empty, with or without a principal.
	Trust string
	// Workspace is an absolute path, WorkspaceID the durable id of the workspace,
	// and Session the session key.
	Workspace, WorkspaceID, Session string
}

// ReadSessionFile reads the file in which the host that starts attache describes the session:
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
// in YAML or JSON. It reads the file strictly: unknown names, duplicate names and numbers in
// place of strings are errors. An unknown word for trust means sandboxed.
//
// Whoever can write the file can be any principal. So it must be a regular file and not a
// symbolic link, belong to root or to the user who runs attache, be closed to group and others,
// and have at most 64 KiB. (Windows has no such modes: there the directory must keep others
// out.)
//
// Errors wrap [ErrSessionFile], and fs.ErrNotExist if there is no such file; none quotes the
// values in it.
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

// parseSession parses the content of a session file.
func parseSession(data []byte) (SessionFile, error) {
	if text := textfile.TrimMark(data); json.Valid(text) {
		data = jsonAsYAML(text)
	}
	var w sessionYAML
	if err := decode(data, &w, knownSession); err != nil {
		return SessionFile{}, err
	}
	return w.session()
}

// jsonStrings matches the strings in JSON.
var jsonStrings = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"(?:[^"\\]|\\.)*"`) })

// jsonAsYAML converts valid JSON to YAML. Only some escapes in strings, and tabs between
// strings, are not YAML already.
func jsonAsYAML(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	return jsonStrings().ReplaceAllFunc(text, func(raw []byte) []byte {
		var s string
		_ = json.Unmarshal(raw, &s) // it is valid
		return strconv.AppendQuote(nil, s)
	})
}

// session checks and converts the content of the file.
func (w sessionYAML) session() (SessionFile, error) {
	s := SessionFile{
		Trust:     sessionstate.NormalizeTrust(w.Owner.Trust.text),
		Workspace: w.Workspace.text, WorkspaceID: w.WorkspaceID.text, Session: w.Session.text,
	}
	if s.Workspace != "" && !filepath.IsAbs(s.Workspace) {
		return SessionFile{}, textfile.ErrorAt(w.Workspace.at, "workspace is not an absolute path: write it from the root on")
	}
	p := Entry{ID: "session file", Attributes: w.Owner.attributes()}.Principal()
	switch {
	case p.User+p.Tenant+p.Email+p.Plan+p.Scope != "" || p.Roles != nil || p.Permissions != nil:
		s.Principal = p
	case s == SessionFile{}:
		// Usually the file is being written at this moment.
		return SessionFile{}, errors.New("it says nothing: write at least one of " + knownSession)
	}
	return s, nil
}
