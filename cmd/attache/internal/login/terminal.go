package login

import (
	"bufio"
	"fmt"
	"io"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

// A UI connects a login to the person who logs in.
type UI struct {
	// Show opens the address in a browser, or prints it.
	Show func(address string)
	// Lines are the lines that the person types or pastes; nil for none.
	Lines <-chan string
	// Say prints a message.
	Say func(text string)
}

// TerminalUI returns the UI of a command: it opens a browser and reads lines from the terminal.
func TerminalUI(p cli.Process) UI {
	ui := UI{Say: func(text string) { fmt.Fprintln(p.Stderr, "attache:", text) }}
	hint := ""
	if term.IsTerminal(p.Stdin) {
		ui.Lines = lines(p.Stdin)
		hint = "; if the browser is on another machine, paste the address that it ends at"
	}
	ui.Show = func(address string) {
		address = cli.Printable(address) // the server chose it
		if openBrowser(p, address) {
			fmt.Fprintf(p.Stderr, "attache: approve in the browser; if none has opened, open this address%s:\n%s\n", hint, address)
			return
		}
		fmt.Fprintf(p.Stderr, "attache: open this address in a browser%s:\n%s\n", hint, address)
	}
	return ui
}

// lines returns a channel of the lines of r, which is closed at the end of r.
func lines(r io.Reader) <-chan string {
	all := make(chan string)
	go func() {
		defer close(all)
		for s := bufio.NewScanner(r); s.Scan(); {
			all <- s.Text()
		}
	}()
	return all
}
