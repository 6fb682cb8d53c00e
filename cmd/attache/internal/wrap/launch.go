package wrap

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
)

// launch returns how clients will start attache. By default this is a path, because desktop
// programs do not have the search path of a shell. A shared file gets the name instead, because a
// path on this machine is wrong on others.
func (j *Job) launch(shared bool) (clientconfig.Launch, error) {
	switch {
	case j.Command != "":
		return clientconfig.Launch{Command: j.Command}, nil
	case j.NPX:
		return npxLaunch(), nil
	case shared:
		return clientconfig.Launch{Command: "attache"}, nil
	}
	path, err := os.Executable()
	if err != nil {
		return clientconfig.Launch{}, fmt.Errorf("cannot find the path of attache: %w: give it with --command", err)
	}
	if strings.Contains(filepath.ToSlash(path), "/_npx/") {
		return npxLaunch(), nil // npx can clear that directory at any time
	}
	if onPath, found := j.searchPath(path); found {
		path = onPath // a package manager's link keeps its path when the version changes
	}
	if !utf8.ValidString(path) {
		return clientconfig.Launch{}, fmt.Errorf("the path of attache, %q, is not valid UTF-8: move it, or give --command", path)
	}
	return clientconfig.Launch{Command: path}, nil
}

// npxLaunch returns a launch of attache's npm package. On Windows npx is a script, which some
// clients cannot start.
func npxLaunch() clientconfig.Launch {
	args := []string{"-y", clientconfig.Package}
	if runtime.GOOS == "windows" {
		return clientconfig.Launch{Command: "cmd", Args: append([]string{"/c", "npx"}, args...)}
	}
	return clientconfig.Launch{Command: "npx", Args: args}
}

// searchPath returns the path at which a shell finds attache, and whether that is the program at
// path.
func (j *Job) searchPath(path string) (string, bool) {
	this, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	name := "attache"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range filepath.SplitList(j.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		candidate := filepath.Join(dir, name)
		info, err := os.Stat(candidate)
		if err == nil && !info.IsDir() {
			return candidate, os.SameFile(this, info) // a shell starts the first one
		}
	}
	return "", false
}
