// Package cli holds what all commands need: the inputs of the process, errors with exit statuses, and
// helpers for messages.
package cli

import (
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// A Process holds the inputs of the process: arguments, environment, directories of the user and streams.
type Process struct {
	// Args are the arguments without the program's name.
	Args []string
	// Env is the environment, as "NAME=value".
	Env []string
	// ConfigDir is the directory for the user's configuration files; empty if there is none.
	ConfigDir string
	// StateDir is the directory for persistent data of the user's programs; empty if there is none.
	StateDir string

	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Tokens are the tokens that attache obtained for servers since it started. They must not appear
	// in a log or a recording. It may be nil.
	Tokens *Tokens
}

// StatePath returns a path in attache's directory for persistent data, or "" without a StateDir.
func (p Process) StatePath(names ...string) string {
	if p.StateDir == "" {
		return ""
	}
	return filepath.Join(p.StateDir, "attache", filepath.Join(names...))
}

// Tokens are secrets that become known while attache runs.
type Tokens struct {
	mu  sync.Mutex
	all []string
}

// maxTokens is the maximum number of tokens, more than are valid at the same time.
const maxTokens = 100

// Add adds tokens. It ignores empty tokens and those that are already there.
func (t *Tokens) Add(tokens ...string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, token := range tokens {
		if token != "" && !slices.Contains(t.all, token) {
			t.all = append(slices.Clone(t.all[max(0, len(t.all)-maxTokens+1):]), token)
		}
	}
}

// All returns the tokens. Add does not modify a slice that All has returned.
func (t *Tokens) All() []string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// Getenv returns the value of a variable, or "" if it is not set. Of two entries with the same name it
// uses the first, like package os.
func (p Process) Getenv(name string) string {
	for _, entry := range p.Env {
		if n, value, ok := strings.Cut(entry, "="); ok && SameVariable(n, name) {
			return value
		}
	}
	return ""
}

// SameVariable reports whether two names are the same variable. Windows ignores the case of names, and its own
// environment has Path instead of PATH.
func SameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
