package term

import (
	"io"
	"os"

	"golang.org/x/term"
)

// HasColour reports whether to write colours to w: w is a terminal, and the user has not disabled colours
// (no-color.org).
func HasColour(getenv func(string) string, w io.Writer) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && IsTerminal(w)
}

// IsTerminal reports whether a stream of the process, or that under an [Output], is a terminal.
func IsTerminal(stream any) bool {
	if out, ok := stream.(*Output); ok {
		stream = out.To
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && term.IsTerminal(int(f.Fd()))
}
