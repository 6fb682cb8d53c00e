package login

import (
	"os/exec"
	"runtime"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// OpenBrowser opens an address in a browser, and reports whether a browser could be started.
// It does not wait for the browser.
func OpenBrowser(p cli.Process, address string) bool {
	for _, argv := range browsers(p) {
		argv = replaceAddress(argv, address)
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = p.Env
		if cmd.Start() == nil {
			go cmd.Wait()
			return true
		}
	}
	return false
}

// browsers returns commands that open a browser, the best first.
func browsers(p cli.Process) (all [][]string) {
	for one := range strings.SplitSeq(p.Getenv("BROWSER"), ":") {
		if argv := strings.Fields(one); len(argv) > 0 {
			all = append(all, argv)
		}
	}
	switch {
	case len(all) > 0:
		return all
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

// replaceAddress puts the address in the place of %s, or behind the command. No shell
// reads it.
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
