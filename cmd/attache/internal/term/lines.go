package term

import (
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/sessionstate"
)

// PrintableLines replaces control characters in text, except for line breaks, tabs and the escapes of a
// [Style]. Names and values of peers may contain control characters that a terminal would obey.
func PrintableLines(text string) string {
	parts := strings.Split(text, "\x1b[")
	for i, part := range parts {
		escape := ""
		switch {
		case i == 0:
		case isColour(part):
			escape = "\x1b["
		default:
			escape = "\uFFFD["
		}
		parts[i] = escape + cli.Printable(part, '\n', '\t')
	}
	return strings.Join(parts, "")
}

// isColour reports whether text is the rest of an escape that begins or ends a Style. Other escapes can
// hide text.
func isColour(text string) bool {
	style, _, ends := strings.Cut(text, "m")
	return ends && (style == "0" || slices.Contains([]Style{Heading, Quiet, Bad, Good, Notice, Reason}, Style(style)))
}

// Provenance returns the source of a fact in parentheses.
func Provenance(source, from string) string {
	switch {
	case from == "":
		return "(" + source + ")"
	case source == sessionstate.None.String():
		return "(" + from + ")"
	}
	return "(" + source + ": " + from + ")"
}
