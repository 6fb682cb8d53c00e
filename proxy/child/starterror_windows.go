package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

// findCommand returns the file to start. It searches the PATH in o.Env for names with
// the endings in the PATHEXT of this process (npx is npx.cmd). It ignores entries of
// PATH that are not absolute, and the working directory, which Windows searches first:
// otherwise the working directory, perhaps a foreign repository, would decide what is
// run.
func findCommand(o Options) (string, error) {
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return "", notFound("", fs.ErrInvalid, "no command was given: name the program to run")
	}
	name := o.Argv[0]
	if strings.ContainsAny(name, `:\/`) {
		return findFile(o, name)
	}
	path := getenv(o.Env, "PATH")
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		// With a path, LookPath searches no directory, and tries the endings.
		if file, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return file, nil
		}
	}
	return "", notInPath(name, path, fs.ErrNotExist)
}

// findFile returns the file of a path, which may lack its ending.
func findFile(o Options, name string) (string, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(o.Dir, name)
	}
	file, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil // the caller gave a path
	}
	if err == nil {
		file, err = filepath.Abs(file) // CreateProcess does not resolve it relative to Dir
	}
	if err != nil {
		return "", notFound(o.Argv[0], fs.ErrNotExist, "%s: no such program: install it or correct the path", name)
	}
	return file, nil
}

// mayRun returns nil: findCommand has already checked the file.
func mayRun(Options, string) error { return nil }

// diagnose returns why path was not started, and what to do next.
func diagnose(o Options, path string, err error) string {
	if o.Dir != "" {
		if info, e := os.Stat(o.Dir); e != nil {
			return fmt.Sprintf("working directory: %v: correct it or create it", e)
		} else if !info.IsDir() {
			return fmt.Sprintf("working directory %s: it is not a directory: correct it", o.Dir)
		}
	}
	for _, c := range causes {
		if errors.Is(err, c.err) {
			return fmt.Sprintf("%s: %v: %s", path, err, c.hint)
		}
	}
	if errors.Is(err, errBatchLineEnd) || errors.Is(err, errBatchTooLong) {
		return fmt.Sprintf("%s: %v", path, err)
	}
	return fmt.Sprintf("%s: %v: check that it runs from a command prompt", path, err)
}

var causes = []struct {
	err  syscall.Errno
	hint string
}{
	{windows.ERROR_FILE_NOT_FOUND, "install it or correct the path"},
	{windows.ERROR_PATH_NOT_FOUND, "install it or correct the path"},
	{windows.ERROR_ACCESS_DENIED, "let this user run it, and see whether it is a directory or is kept from running by a policy"},
	{windows.ERROR_BAD_EXE_FORMAT, "it is not a program, or one for another kind of processor: start it through its interpreter, or install the build for this system"},
	{windows.ERROR_EXE_MACHINE_TYPE_MISMATCH, "it was built for another kind of processor: install the build for this one"},
	{windows.ERROR_ELEVATION_REQUIRED, "it wants to run as administrator, which nobody can be asked for here: start attache as one, or another program"},
	{windows.ERROR_FILENAME_EXCED_RANGE, "its path and arguments are too long together (32767 characters): shorten them"},
	{windows.ERROR_VIRUS_INFECTED, "the virus scanner keeps it from running: look into its report"},
	{syscall.EINVAL, "there is a NUL in an argument or in the environment: take it out"},
}
