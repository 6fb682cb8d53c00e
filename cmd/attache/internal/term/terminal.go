package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// HasColour reports whether to write colours to w: w is a terminal, and the user has not disabled colours
// (no-color.org).
func HasColour(getenv func(string) string, w io.Writer) bool {
	if out, ok := w.(*Output); ok {
		w = out.To
	}
	f, ok := w.(*os.File)
	if !ok || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && IsTerminal(f)
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
