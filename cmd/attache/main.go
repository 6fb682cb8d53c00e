// Command attache stands between an MCP client and a server and gives the server the session's
// context:
//
//	attache [flags] -- COMMAND [ARG...] | URL
//
// This package is the only one of the module that uses the globals of package os. main puts
// them into a [cli.Process]; all other code takes them from there, so that tests can replace
// them. Each subcommand has a file of its own.
package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

func main() {
	p := cli.Process{
		Args:   os.Args[1:],
		Env:    os.Environ(),
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Tokens: &cli.Tokens{},
	}
	if dir, err := os.UserConfigDir(); err == nil && filepath.IsAbs(dir) { // else it is in the workspace
		p.ConfigDir = dir
	}
	p.StateDir = userStateDir(p.Getenv)
	os.Exit(run(context.Background(), p))
}

// userStateDir returns the user's directory for the state of programs: XDG_STATE_HOME, or its
// equivalent on other systems. It returns "" if there is none.
func userStateDir(getenv func(string) string) string {
	under := func(variable string, names ...string) string {
		dir := getenv(variable)
		if !filepath.IsAbs(dir) {
			return ""
		}
		return filepath.Join(append([]string{dir}, names...)...)
	}
	switch runtime.GOOS {
	case "windows":
		return under("LOCALAPPDATA")
	case "darwin":
		return under("HOME", "Library", "Application Support")
	}
	return cmp.Or(under("XDG_STATE_HOME"), under("HOME", ".local", "state"))
}
