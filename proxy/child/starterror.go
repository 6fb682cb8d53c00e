package child

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
)

// A StartError reports why a command could not be started. Nothing was started
// and no file was left open.
type StartError struct {
	// Command is Argv[0] of the options, "" if Argv was empty.
	Command string

	// Path is the file that Start tried to run, "" if the command was not found.
	Path string

	// Err is the cause, a syscall.Errno if the system returned one. errors.Is
	// matches it with fs.ErrNotExist, fs.ErrPermission and similar errors.
	Err error

	text string // what is wrong, and what to do next
}

// Error returns the command, the file, the error of the system, and what to do
// next.
func (e *StartError) Error() string {
	return fmt.Sprintf("cannot start %q: %s", e.Command, e.text)
}

// Unwrap returns Err.
func (e *StartError) Unwrap() error { return e.Err }

// Status returns the exit status that a shell would use: 127 if the command, or
// something that it needs, does not exist, and 126 if it exists but cannot be run.
func (e *StartError) Status() int {
	if e.Path == "" || errors.Is(e.Err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// notFound returns the error of a command without a file.
func notFound(command string, err error, format string, args ...any) error {
	return &StartError{Command: command, Err: err, text: fmt.Sprintf(format, args...)}
}

func notInPath(name, path string, err error) error {
	switch {
	case strings.Contains(name, " "):
		return notFound(name, err, "no such program in PATH: if these are a program and its arguments, pass each as a separate argument")
	case path == "":
		return notFound(name, err, "PATH is empty or not set: set it, or give the full path of the program")
	}
	return notFound(name, err, "no such program in PATH (looked in %s): install it, correct its name or give its full path", path)
}

// getenv returns the value of a variable in a list such as that of os.Environ: the
// last one if there are several, as in os/exec. Windows ignores the case of names.
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
