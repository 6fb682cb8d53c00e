// Package trust keeps which workspaces the user trusts with policies of their own,
// and adds those policies to what a policy source says.
//
// A workspace's policy file, [File], is text from a repository, and anybody may
// have written it. It is used only after the user has trusted it, by the path of
// the workspace and the digest of the text, as direnv does with .envrc: a file that
// has changed is untrusted again, and one that is copied elsewhere is not trusted
// there.
//
// The path of a session's workspace may be a client's word. It is only compared
// with the paths that the user has trusted; what is opened is a path of the user's.
//
// What the user has trusted can only add: it has no parent, can drop nothing, does
// not take the place of a policy of the same name, and is left out whole where it
// would crowd others out of the block.
//
// What the package does when it cannot: a state that cannot be read trusts nobody.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// File is where a workspace keeps policies of its own, with slashes.
const File = ".attache/policy.yaml"

// maxFile is how long a workspace's policies may be, in bytes: the block they go
// into is far shorter.
const maxFile = 64 << 10

// maxRecord is how long a file of the state may be, in bytes.
const maxRecord = 64 << 10

// A Record says that the user trusts one text in one workspace.
type Record struct {
	// Workspace is the workspace as the user named it, Real where links led then.
	// Both are absolute.
	Workspace string `json:"workspace"`
	Real      string `json:"real"`
	// Digest is that of the text; see [policy.Digest].
	Digest  string    `json:"digest"`
	Trusted time.Time `json:"trusted"`
}

// Path is where the text is.
func (r Record) Path() string { return filepath.Join(r.Real, filepath.FromSlash(File)) }

// A Store is the directory that holds what the user trusts: one file for each workspace,
// replaced in one step, so that any number of programs may change it at the same time. The
// directory need not exist.
type Store struct{ Dir string }

// Resolve returns the workspace that path names, its root or its policy file: the
// absolute path, and where links lead.
func Resolve(path string) (workspace, real string, err error) {
	if workspace, err = filepath.Abs(path); err != nil {
		return "", "", err
	}
	if strings.HasSuffix(filepath.ToSlash(workspace), "/"+File) {
		workspace = filepath.Dir(filepath.Dir(workspace))
	}
	real, err = filepath.EvalSymlinks(workspace)
	return workspace, real, err
}

// Read returns the text of the policy file of the workspace at root. An error that
// is [fs.ErrNotExist] says that it has none. A link that leads out of the workspace
// is not followed.
func Read(root string) ([]byte, error) {
	// Opening a named pipe would wait for a writer, so look first.
	if info, err := os.Stat(root); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, errors.New("that is a file: give the directory it is in")
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	data, _, err := textfile.ReadIn(dir, filepath.FromSlash(File), textfile.Rules{Max: maxFile})
	return data, err
}

// Trust records that the user trusts text in a workspace, in place of what was trusted there
// before.
func (s Store) Trust(workspace, real string, text []byte, now time.Time) error {
	data, err := json.Marshal(Record{Workspace: workspace, Real: real, Digest: policy.Digest(string(text)), Trusted: now.UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return textfile.Replace(s.file(real), append(data, '\n'))
}

// file returns where the record of the workspace at real is. A path may be too long for the name
// of a file, and have characters that no name can have.
func (s Store) file(real string) string {
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:])+".json")
}

// Untrust forgets what is trusted in the workspace that path names, which need not
// exist any more. It reports whether there was anything.
func (s Store) Untrust(path string) (bool, error) {
	workspace, real, _ := Resolve(path) // a workspace that is gone is known by its name
	all, err := s.All()
	if err != nil {
		return false, err
	}
	found := false
	for _, r := range all {
		if r.Real != real && r.Real != workspace && r.Workspace != workspace {
			continue
		}
		switch gone := os.Remove(s.file(r.Real)); {
		case gone == nil:
			found = true
		case !errors.Is(gone, fs.ErrNotExist): // another program was faster
			err = errors.Join(err, gone)
		}
	}
	return found, err
}

// All returns what is trusted, in no particular order. It skips files that are not records, that
// others could have written, and those whose name is that of another workspace. None of these grants trust.
func (s Store) All() ([]Record, error) {
	entries, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Record
	for _, e := range entries {
		if path := filepath.Join(s.Dir, e.Name()); e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".json") {
			if r, err := readRecord(path); err == nil && s.file(r.Real) == path {
				all = append(all, r)
			}
		}
	}
	return all, nil
}

func readRecord(path string) (r Record, err error) {
	data, _, err := textfile.Read(path, textfile.Rules{Max: maxRecord, Closed: 0o077})
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

// Any reports whether anything may be trusted at all. It costs one look.
func (s Store) Any() bool {
	if s.Dir == "" {
		return false
	}
	d, err := os.Open(s.Dir)
	if err != nil {
		return false
	}
	defer d.Close()
	names, _ := d.Readdirnames(1)
	return len(names) > 0
}

// Find returns what is trusted in the workspace that a session names by path. Of
// the file system only what the user has trusted is looked at.
func (s Store) Find(path string) (Record, bool) {
	if path == "" {
		return Record{}, false
	}
	path = filepath.Clean(path)
	all, err := s.All()
	if err != nil {
		return Record{}, false
	}
	for _, r := range all {
		if r.Real == path || r.Workspace == path && leadsTo(r.Workspace, r.Real) {
			return r, true
		}
	}
	return Record{}, false
}

// leadsTo reports whether a link of the user's still leads where it did.
func leadsTo(workspace, real string) bool {
	now, err := filepath.EvalSymlinks(workspace)
	return err == nil && now == real
}
