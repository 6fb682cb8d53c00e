//go:build unix

package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// findCommand returns the file to start. It searches the PATH in o.Env, as the
// process itself would. It ignores entries of PATH that are not absolute, as
// os/exec does: otherwise the working directory, perhaps a foreign repository,
// would decide what is run.
func findCommand(o Options) (string, error) {
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return "", notFound("", fs.ErrInvalid, "no command was given: name the program to run")
	}
	name, path := o.Argv[0], getenv(o.Env, "PATH")
	if strings.Contains(name, "/") {
		return name, nil
	}
	var denied string
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if !filepath.IsAbs(dir) || isDir(file) {
			continue
		}
		switch err := unix.Access(file, unix.X_OK); {
		case err == nil:
			return file, nil
		// As in a shell, a file that may not be run is reported only if there is no other.
		case err == syscall.EACCES && denied == "":
			denied = file
		}
	}
	if denied != "" {
		return denied, nil // the system will say why it may not be run
	}
	return "", notInPath(name, path, syscall.ENOENT)
}

// mayRun returns why path, which findCommand returned, does not exist or may not be run, nil if it may.
func mayRun(o Options, path string) error {
	file := resolve(o, path)
	if isDir(file) {
		return syscall.EACCES
	}
	return unix.Access(file, unix.X_OK)
}

// resolve returns path relative to the working directory of this process: a relative
// path is relative to that of the child.
func resolve(o Options, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(o.Dir, path)
}

func isDir(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.IsDir()
}

// diagnose returns what is wrong with a command and what to do next. The error of
// the system alone is misleading: ENOENT may also mean that the working directory
// or the interpreter of a script is missing.
func diagnose(o Options, path string, err error) string {
	if e := dirError(o.Dir); e != nil {
		return fmt.Sprintf("working directory %q: %v: correct it or create it", o.Dir, e)
	}
	file := resolve(o, path)
	switch {
	case errors.Is(err, syscall.ENOENT):
		return missing(file)
	case errors.Is(err, syscall.EACCES):
		return denied(file)
	}
	for _, c := range causes {
		if errors.Is(err, c.errno) {
			return fmt.Sprintf("%s: %v: %s", file, c.errno, c.hint)
		}
	}
	return fmt.Sprintf("%s: %v: check that it runs from a shell", file, err)
}

var causes = []struct {
	errno syscall.Errno
	hint  string
}{
	{syscall.ENOEXEC, "it is neither a program for this system nor a script with a #! line: start it through its interpreter, as in sh FILE"},
	{syscall.ETXTBSY, "it is still being written: let its installation end and try again"},
	{syscall.E2BIG, "arguments and environment are too large together: shorten them"},
	{syscall.EINVAL, "there is a NUL byte in an argument or in the environment: take it out"},
	{syscall.ENOTDIR, "a part of its path is not a directory: correct the path"},
	{syscall.EAGAIN, "there are too many processes: end some or raise the limit (ulimit -u)"},
	{syscall.ENOMEM, "there is too little memory: end something else and try again"},
	{syscall.EMFILE, "too many files are open: raise the limit (ulimit -n)"},
	{syscall.ENFILE, "too many files are open in the system: end something else and try again"},
	{syscall.EPERM, "the system does not let it run: look into its sandbox and security settings"},
}

// dirError returns why a process cannot start in dir, nil if it can.
func dirError(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return errors.Unwrap(err)
	case !info.IsDir():
		return syscall.ENOTDIR
	}
	return unix.Access(dir, unix.X_OK)
}

// missing explains ENOENT.
func missing(file string) string {
	if _, err := os.Stat(file); err != nil {
		return fmt.Sprintf("%s: %v: install it or correct the path", file, syscall.ENOENT)
	}
	if interpreter := interpreterOf(file); interpreter != "" {
		return fmt.Sprintf("%s: its interpreter %q: %v: install that or correct the first line of the file", file, interpreter, syscall.ENOENT)
	}
	return fmt.Sprintf("%s: its loader: %v: it was built for another system, install the build for this one", file, syscall.ENOENT)
}

// denied explains EACCES.
func denied(file string) string {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %v: give this user access to the directories above it", file, syscall.EACCES)
	case info.IsDir():
		return fmt.Sprintf("%s: %v: it is a directory, name the program in it", file, syscall.EACCES)
	case unix.Access(file, unix.X_OK) != nil && interpreterOf(file) == "":
		return fmt.Sprintf("%s: %v: make it executable (chmod +x), if it is a program", file, syscall.EACCES)
	case unix.Access(file, unix.X_OK) != nil:
		return fmt.Sprintf("%s: %v: make the script executable (chmod +x) or start it through %s", file, syscall.EACCES, interpreterOf(file))
	}
	return fmt.Sprintf("%s: %v: look at its interpreter, and whether its disk is mounted noexec", file, syscall.EACCES)
}

// interpreterOf returns the program in the #! line of a script, "" if there is no
// such line.
func interpreterOf(file string) string {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return "" // to open a named pipe would wait for a writer
	}
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 256)) // Linux reads no more of it either (BINPRM_BUF_SIZE)
	line, _, _ := bytes.Cut(head, []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimLeft(string(rest), " \t"), " ")
	return name
}
