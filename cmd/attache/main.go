// Command attache stands between an MCP client and a stdio server and carries the
// session's context to where it is needed:
//
//	attache [flags] -- COMMAND [ARG...]
//
// This package is the only one of the module that touches the process's globals.
// main names them once, in a [process]; everything else takes them from there, so
// that a test can hand in its own. Each subcommand has a file of its own.
package main

import (
	"context"
	"io"
	"os"
	"strings"
)

// process is what attache was given by whoever started it.
type process struct {
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

func main() {
	p := process{
		Args:   os.Args[1:],
		Env:    os.Environ(),
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	}
	if dir, err := os.UserConfigDir(); err == nil {
		p.ConfigDir = dir
	}
	p.StateDir = userStateDir(p.getenv)
	os.Exit(run(context.Background(), p))
}

// getenv returns the value of the variable name, empty if there is none. Of two
// entries with one name the first holds, as in package os.
func (p process) getenv(name string) string {
	for _, entry := range p.Env {
		if len(entry) > len(name) && entry[len(name)] == '=' && strings.HasPrefix(entry, name) {
			return entry[len(name)+1:]
		}
	}
	return ""
}
