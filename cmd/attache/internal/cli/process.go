// Package cli holds what every command needs: what the process was started with, errors
// with their exit status, and the words of messages.
package cli

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// A Process holds what the operating system gave attache: arguments, environment, directories
// of the user and streams.
type Process struct {
	// Args are the arguments without the program's name.
	Args []string
	// Env is the environment, as "NAME=value".
	Env []string
	// ConfigDir is where this user's configuration lives; empty where there is
	// no such place, and then none is looked for.
	ConfigDir string
	// StateDir is where programs keep data of this user between their runs; empty where there
	// is no such place, and then nothing is kept.
	StateDir string

	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Tokens are those that attache has got for servers since it was started. They must
	// not reach a log or a recording. It may be nil.
	Tokens *Tokens
}

// StatePath returns where attache keeps something of this user, "" without a StateDir.
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

// maxTokens is how many tokens are kept: more than are of use at a time.
const maxTokens = 100

// Add adds tokens; those that are there, and empty ones, are left out.
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

// All returns the tokens. The slice is another one whenever they have changed.
func (t *Tokens) All() []string {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// Getenv returns the value of the variable name, empty if there is none. Of two
// entries with one name the first holds, as in package os.
func (p Process) Getenv(name string) string {
	for _, entry := range p.Env {
		if len(entry) > len(name) && entry[len(name)] == '=' && strings.HasPrefix(entry, name) {
			return entry[len(name)+1:]
		}
	}
	return ""
}
