package login

import (
	"os/exec"
	"runtime"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// openBrowser opens an address in a browser, and reports whether a browser could be started.
// It does not wait for the browser.
func openBrowser(p cli.Process, address string) bool {
	for _, argv := range browsers(p) {
		argv = replaceAddress(argv, address)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = p.Env
		setApart(cmd)
		if cmd.Start() == nil {
			go cmd.Wait()
			return true
		}
	}
	return false
}

// browsers returns commands that open a browser, in the order in which to try them. By convention, BROWSER is
// a list of commands, separated by colons. Without a screen there is none: the person opens the address.
func browsers(p cli.Process) (commands [][]string) {
	for command := range strings.SplitSeq(p.Getenv("BROWSER"), ":") {
		if argv := strings.Fields(command); len(argv) > 0 {
			commands = append(commands, argv)
		}
	}
	switch {
	case len(commands) > 0:
		return commands
	case runtime.GOOS == "darwin":
		return [][]string{{"open"}}
	case runtime.GOOS == "windows":
		return [][]string{{"rundll32", "url.dll,FileProtocolHandler"}}
	case p.Getenv("WSL_DISTRO_NAME") != "":
		return [][]string{{"wslview"}, {"xdg-open"}}
	case p.Getenv("DISPLAY") != "" || p.Getenv("WAYLAND_DISPLAY") != "":
		return [][]string{{"xdg-open"}, {"x-www-browser"}}
	}
	return nil
}

// replaceAddress replaces %s by the address, or appends the address. The command is not run by a
// shell.
func replaceAddress(argv []string, address string) (out []string) {
	found := false
	for _, word := range argv {
		found = found || strings.Contains(word, "%s")
		out = append(out, strings.ReplaceAll(word, "%s", address))
	}
	if !found {
		out = append(out, address)
	}
	return out
}
