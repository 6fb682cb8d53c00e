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

// launch returns how clients are to start attache. Programs with windows do not
// have the search path of a shell, so by default it is a path. A shared file gets the
// name: a path of this machine is wrong on others.
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
		return clientconfig.Launch{}, fmt.Errorf("where attache is cannot be found out: %w: say it with --command", err)
	}
	if strings.Contains(filepath.ToSlash(path), "/_npx/") {
		return npxLaunch(), nil // npx clears that directory as it likes
	}
	if onPath, found := j.searchPath(path); found {
		path = onPath // a package manager's link stays where it is when the version changes
	}
	if !utf8.ValidString(path) {
		return clientconfig.Launch{}, fmt.Errorf("attache is in %q, which no configuration can name: move it, or give --command", path)
	}
	return clientconfig.Launch{Command: path}, nil
}

// npxLaunch starts attache's npm package. On Windows npx is a script, which not
// every client starts.
func npxLaunch() clientconfig.Launch {
	args := []string{"-y", clientconfig.Package}
	if runtime.GOOS == "windows" {
		return clientconfig.Launch{Command: "cmd", Args: append([]string{"/c", "npx"}, args...)}
	}
	return clientconfig.Launch{Command: "npx", Args: args}
}

// searchPath returns where in the search path the program at path is found by its
// name.
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
		there := filepath.Join(dir, name)
		info, err := os.Stat(there)
		if err == nil && !info.IsDir() {
			return there, os.SameFile(this, info) // the first one is what a shell starts
		}
	}
	return "", false
}
