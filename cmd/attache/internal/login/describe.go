package login

import (
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// Describe returns how long a login is valid and whether it can be renewed, for people.
func (g *Grant) Describe(now time.Time) string {
	text := ""
	if len(g.Scopes) > 0 {
		text = " (" + strings.Map(cli.Printable, strings.Join(g.Scopes, " ")) + ")"
	}
	switch {
	case g.Ended != "":
		return text + ": has ended: " + strings.Map(cli.Printable, g.Ended)
	case !g.Usable(now):
		return text + ": has ended " + g.Expires.Local().Format(time.DateTime)
	case g.CanRenew:
		text += ", renews itself"
	case !g.Expires.IsZero():
		text += ", until " + g.Expires.Local().Format(time.DateTime)
	}
	if len(g.Wanted) > 0 {
		text += "; the server wants more rights (" + strings.Map(cli.Printable, strings.Join(g.Wanted, " ")) + "): log in again"
	}
	return text
}
