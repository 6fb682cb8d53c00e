// Package trust stores which workspaces' policies the user trusts, and adds those
// policies to the policies of another source.
//
// A workspace's policy file, [File], is text from a repository, and anybody may
// have written it. It is used only after the user has trusted the path of the
// workspace and the digest of the text, as with direnv and .envrc. A file that has
// changed, or that was copied to another place, is not trusted.
//
// The client may choose the path of a session's workspace. It is only compared
// with the paths that the user has trusted; only these are opened.
//
// Trusted policies can only add to others: they have no parent, cannot drop a
// policy and do not replace a policy with the same name. They are left out
// completely if they would crowd others out of the block.
//
// If the store cannot be read, no workspace is trusted.
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

	"github.com/rogpeppe/go-internal/robustio"

	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// File is the path of a workspace's policy file in the workspace, with slashes.
const File = ".attache/policy.yaml"

// maxFile bounds a workspace's policy file, in bytes. The block of all policies is much shorter.
const maxFile = 64 << 10

// maxRecord bounds a record, in bytes.
const maxRecord = 64 << 10

// A Record says that the user trusts one text in one workspace.
type Record struct {
	// Workspace is the path of the workspace that the user gave, and Real the path without
	// links. Both are absolute.
	Workspace string `json:"workspace"`
	Real      string `json:"real"`
	// Digest is the digest of the text; see [policy.Digest].
	Digest  string    `json:"digest"`
	Trusted time.Time `json:"trusted"`
}

// Path returns the path of the policy file.
func (r Record) Path() string { return filepath.Join(r.Real, filepath.FromSlash(File)) }

// A Store is a directory with a record for each trusted workspace. A record is replaced
// atomically, so that any number of programs may change the store at the same time. The
// directory need not exist.
type Store struct{ Dir string }

// Resolve returns the absolute path of a workspace, and the path without links. path is the root of
// the workspace or its policy file.
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

// Read returns the text of the policy file of the workspace at root. The error is [fs.ErrNotExist]
// if there is none. Read does not follow a link that leads out of the workspace.
func Read(root string) ([]byte, error) {
	// Opening a named pipe would wait for a writer, so check first.
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

// Trust records that the user trusts text in a workspace. It replaces an earlier record.
func (s Store) Trust(workspace, real string, text []byte, now time.Time) error {
	data, err := json.Marshal(Record{Workspace: workspace, Real: real, Digest: policy.Digest(string(text)), Trusted: now.UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	return textfile.Replace(s.file(real), append(data, '\n'))
}

// file returns the path of the record for the workspace at real. Its name is a hash, because a path
// may be too long for the name of a file, and has characters that a name cannot have.
func (s Store) file(real string) string {
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(s.Dir, hex.EncodeToString(sum[:])+".json")
}

// Untrust removes the records of the workspace at path, which need not exist any more. It reports
// whether there were any.
func (s Store) Untrust(path string) (bool, error) {
	workspace, real, _ := Resolve(path) // a workspace that was removed is found by its path
	all, err := s.All()
	if err != nil {
		return false, err
	}
	found := false
	for _, r := range all {
		if r.Real != real && r.Real != workspace && r.Workspace != workspace {
			continue
		}
		// It tries again: Windows does not remove a file that another program is reading.
		if removing := robustio.RemoveAll(s.file(r.Real)); removing != nil {
			err = errors.Join(err, removing)
		} else {
			found = true
		}
	}
	return found, err
}

// All returns all records, in no particular order. It skips files that are not records, that other
// users can write, or that have the name of another workspace. None of these grants trust.
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

// Any reports whether any workspace may be trusted. It is cheap.
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

// Find returns the record of the workspace at path, which a session names. It accesses only paths
// that the user has trusted.
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

// leadsTo reports whether the path of a workspace still leads to real.
func leadsTo(workspace, real string) bool {
	now, err := filepath.EvalSymlinks(workspace)
	return err == nil && now == real
}
