package term

import (
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate"
)

// PrintableLines returns lines, which may have colours, without control characters from the
// names and values of peers. A terminal would obey them.
func PrintableLines(text string) string {
	parts := strings.SplitAfter(text, "\x1b[")
	for i, part := range parts {
		body, begins := strings.CutSuffix(part, "\x1b[")
		body = cli.Printable(body, '\n', '\t')
		if begins && i+1 < len(parts) && isColour(parts[i+1]) {
			body += "\x1b["
		} else if begins {
			body += "\uFFFD["
		}
		parts[i] = body
	}
	return strings.Join(parts, "")
}

// isColour reports whether text goes on as an escape that begins or ends a Style. Others can hide
// what follows.
func isColour(text string) bool {
	style, _, ends := strings.Cut(text, "m")
	return ends && (style == "0" || slices.Contains([]Style{Heading, Quiet, Bad, Good, Notice, Reason}, Style(style)))
}

// Provenance returns where a fact is from, in brackets.
func Provenance(source, from string) string {
	switch {
	case from == "":
		return "(" + source + ")"
	case source == sessionstate.None.String():
		return "(" + from + ")"
	}
	return "(" + source + ": " + from + ")"
}
