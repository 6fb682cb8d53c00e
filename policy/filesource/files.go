package filesource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Limits far above the size of any real directory of policies. They protect from a wrong
// directory, and from text that the operator has not written.
const (
	maxFileBytes = 1 << 20
	maxFiles     = 4096
	maxEntries   = 100_000
	maxDirBytes  = 16 << 20
)

// readFiles reads the policy files in dir. It returns problems, which are those from finding the files,
// and those in the files, in the order of files and lines. The error is not nil if the directory cannot
// be read at all or ctx is done.
func readFiles(ctx context.Context, dir string, paths []string, problems []Problem) ([]*file, []Problem, error) {
	var files []*file
	bytes := 0
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, nil, &dirError{dir: dir, text: noTime, cause: err}
		}
		data, err := readFile(path)
		if err != nil {
			problems = append(problems, Problem{File: path, Text: err.Error()})
			continue
		}
		if bytes += len(data); bytes > maxDirBytes {
			return nil, nil, &dirError{dir: dir, text: "has more than 16 MiB of policy files: correct the path", cause: fs.ErrInvalid}
		}
		f, found := parse(path, data)
		problems = append(problems, found...)
		if f.scope.Name != "" {
			files = append(files, f)
		}
	}
	problems = append(problems, crossCheck(files)...)
	slices.SortFunc(problems, Problem.compare)
	return files, problems, nil
}

// A state describes a directory's policy files, to detect changes.
type state struct {
	files   []fileState
	settled bool // all files are older than settleTime
}

type fileState struct {
	path string
	info fs.FileInfo
}

// settleTime is the age of a file after which a later edit changes its modification time on
// every file system.
const settleTime = 2 * time.Second

func stateOf(paths []string) state {
	now := time.Now()
	s := state{settled: true}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return state{}
		}
		s.files = append(s.files, fileState{path, info})
		s.settled = s.settled && info.ModTime().Add(settleTime).Before(now)
	}
	return s
}

// same reports whether the files are unchanged since before.
func (s state) same(before state) bool {
	return before.settled && slices.EqualFunc(s.files, before.files, func(a, b fileState) bool {
		return a.path == b.path && os.SameFile(a.info, b.info) && a.info.Size() == b.info.Size() && a.info.ModTime().Equal(b.info.ModTime())
	})
}

// findFiles returns the paths of the policy files below dir, in lexical order.
func findFiles(ctx context.Context, dir string) (paths []string, problems []Problem, err error) {
	if err := checkDir(dir); err != nil {
		return nil, nil, err
	}
	entries := 0
	walk := func(name string, entry fs.DirEntry, err error) error {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if entries++; entries > maxEntries || len(paths) > maxFiles {
			return &dirError{dir: dir, text: "has too many files to be a directory of policies: correct the path", cause: fs.ErrInvalid}
		}
		switch {
		case ctx.Err() != nil:
			return &dirError{dir: dir, text: noTime, cause: ctx.Err()}
		case err != nil && name == ".":
			return &dirError{dir: dir, text: unreadable(err), cause: err}
		case err != nil:
			problems = append(problems, Problem{File: path, Text: unreadable(err)})
			return nil
		case name == ".":
			return nil
		case strings.HasPrefix(entry.Name(), "."):
			return skip(entry)
		case isPolicyFile(name):
			paths = append(paths, path)
			return skip(entry)
		}
		return nil
	}
	err = fs.WalkDir(os.DirFS(dir), ".", walk)
	return paths, problems, err
}

// checkDir returns an error unless dir is a directory.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &dirError{dir: dir, text: "there is no such directory: make it or correct the path", cause: err}
	case err != nil:
		return &dirError{dir: dir, text: unreadable(err), cause: err}
	case !info.IsDir():
		return &dirError{dir: dir, text: "is not a directory: give the directory the policy files are in", cause: fs.ErrInvalid}
	}
	return nil
}

// skip skips an entry, including the content of a directory.
func skip(entry fs.DirEntry) error {
	if entry.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func isPolicyFile(name string) bool {
	ext := filepath.Ext(name)
	return strings.EqualFold(ext, ".yaml") || strings.EqualFold(ext, ".yml")
}

// readFile reads one policy file. The text of its error is for a [Problem].
func readFile(path string) ([]byte, error) {
	data, _, err := textfile.Read(path, textfile.Rules{Max: maxFileBytes})
	_, system := errors.AsType[*fs.PathError](err)
	switch {
	case system:
		return nil, errors.New(unreadable(err))
	case errors.Is(err, textfile.ErrTooLarge):
		return nil, fmt.Errorf("%w: divide it into several scopes", err)
	case err != nil:
		return nil, fmt.Errorf("%w: take it out, or give it another name", err)
	}
	return data, nil
}

const noTime = "reading it took too long or was cancelled: try again"

// unreadable returns the text for an error of the system, without the path.
func unreadable(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return fmt.Sprintf("cannot be read (%v): correct its permissions or take it out", err)
}
