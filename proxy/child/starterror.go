package child

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
)

// A StartError tells why a command could not be started. Nothing was started
// and nothing is left open.
type StartError struct {
	// Command is the command as it was given, "" if there was none.
	Command string

	// Path is the file that was tried, "" if the command was not found.
	Path string

	// Err is the cause, a syscall.Errno where the system gave one: errors.Is
	// knows it as fs.ErrNotExist, fs.ErrPermission and the like.
	Err error

	text string // what is wrong, and what to do next
}

// Error names the command, what was tried, the system's word on it, and what to
// do next.
func (e *StartError) Error() string {
	return fmt.Sprintf("cannot start %q: %s", e.Command, e.text)
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// Status is the exit status a shell would leave with: 127 if something that is
// needed does not exist, 126 if it is there and cannot be run.
func (e *StartError) Status() int {
	if e.Path == "" || errors.Is(e.Err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// startError explains why the system did not start path.
func startError(o Options, path string, err error) error {
	return &StartError{Command: o.Argv[0], Path: path, Err: err, text: diagnose(o, path, err)}
}

// notFound explains why there is no file to start.
func notFound(command string, err error, format string, args ...any) error {
	return &StartError{Command: command, Err: err, text: fmt.Sprintf(format, args...)}
}

// notInPath explains why there is no file to start for a name that was looked up.
func notInPath(name, path string, err error) error {
	switch {
	case strings.Contains(name, " "):
		return notFound(name, err, "no such program in PATH: if these are a program and its arguments, give each as a word of its own")
	case path == "":
		return notFound(name, err, "PATH is empty or not set: set it, or give the full path of the program")
	}
	return notFound(name, err, "no such program in PATH (looked in %s): install it, correct its name or give its full path", path)
}

// getenv returns the value of a variable in a list as of os.Environ, the last
// one if there are several, as os/exec has it. On Windows PATH may be called Path.
func getenv(env []string, name string) string {
	value := ""
	for _, entry := range env {
		n, v, ok := strings.Cut(entry, "=")
		if ok && (n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name)) {
			value = v
		}
	}
	return value
}
