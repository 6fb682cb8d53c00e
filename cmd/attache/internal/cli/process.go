// Package cli holds what every command needs: what the process was started with, errors
// with their exit status, and the words of messages.
package cli

import (
	"io"
	"strings"
)

// Process is what attache was started with.
type Process struct {
	// Args are the arguments without the program's name.
	Args []string
	// Env is the environment, as "NAME=value".
	Env []string
	// ConfigDir is where this user's configuration lives; empty where there is
	// no such place, and then none is looked for.
	ConfigDir string
	// StateDir is where programs keep what lasts between their runs for this user;
	// empty where there is no such place, and then nothing is kept.
	StateDir string

	Stdin          io.Reader
	Stdout, Stderr io.Writer
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
