package wrap

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/filecheck"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// checkFlags returns an error if attache could not start with the flags that go into the entries.
// Problems that do not prevent the start, such as a file that does not exist yet, become notes. It
// does not check relative paths in a shared file, because the client's working directory is not
// known, nor values with a variable of the client. carried are the flags with absolute paths.
func (j *Job) checkFlags(carried []string, files []mcpclient.File) error {
	isShared := slices.ContainsFunc(files, func(f mcpclient.File) bool { return j.shared(f.Path) })
	var args []string
	for i := 0; i+1 < len(carried); i += 2 {
		value, err := j.Flags.Get(strings.TrimPrefix(carried[i], "--"))
		isRelative := carried[i+1] != value // carried has it as an absolute path
		hasVariable := strings.Contains(value, "${")
		if err == nil && !hasVariable && !(isShared && isRelative) {
			args = append(args, carried[i], carried[i+1])
		}
	}
	if len(args) == 0 {
		return nil
	}
	s, err := config.LoadEntry(j.Process, args, nil)
	if err != nil {
		return flagProblems(args, err).Err()
	}
	for _, p := range flagProblems(args, filecheck.All(j.Process, s)) {
		j.notes = append(j.notes, p.String())
	}
	j.noteWorkspace(s, args)
	return nil
}

// flagProblems returns the problems in err that are in a flag or in the file that --config names. The
// others are in this process's variables and configuration, which the client's attache may not have.
func flagProblems(args []string, err error) setting.Problems {
	all, _ := errors.AsType[setting.Problems](err)
	return slices.DeleteFunc(all, func(p setting.Problem) bool {
		return !strings.HasPrefix(p.At.Name, "--") && (p.At.File == "" || !slices.Contains(args, "--config"))
	})
}

// noteWorkspace adds a note if the path of --workspace is not a directory on this machine. That is
// not an error, because the server may run elsewhere, for example in a container.
func (j *Job) noteWorkspace(s *config.Settings, args []string) {
	path := s.Session.Workspace
	if !slices.Contains(args, "--workspace") {
		return
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		j.notes = append(j.notes, "--workspace: "+path+" is not a directory: correct it, unless it exists only for the server")
	}
}

// variableNotes returns a note if a variable names this user's configuration and f is a file of Codex, which
// passes few variables to servers. flags are those of the entries.
func (j *Job) variableNotes(f mcpclient.File, flags []string) []string {
	if f.Client == nil || f.Client.Name != "codex" || j.Unwrap || j.Repair || slices.Contains(flags, "--config") {
		return nil
	}
	variable, path := "ATTACHE_CONFIG", j.Getenv("ATTACHE_CONFIG")
	if path == "" && j.ConfigDir == j.Getenv("XDG_CONFIG_HOME") && filepath.Clean(j.ConfigDir) != filepath.Join(j.Getenv("HOME"), ".config") {
		variable, path = "XDG_CONFIG_HOME", filepath.Join(j.ConfigDir, "attache", "config.yaml")
	}
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	return []string{variable + ": Codex does not pass it to servers, so attache does not read " + path + " there: wrap with --config"}
}

// shared reports whether the client's file at path is also used on other machines.
func (j *Job) shared(path string) bool {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return j.Project != "" || mcpclient.ThisSystem(j.Getenv).Shared(path)
}
