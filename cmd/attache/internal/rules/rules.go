// Package rules reads the lists of rules in the configuration, reports mistakes in a rule, and reports
// rules that contradict each other.
//
// The checks of package rewrite and package access are called from here. Those of rules for arguments are
// here: a rule that can never apply is a mistake, and so is a value that the caller could choose although
// it says who calls.
package rules

import (
	"fmt"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// globs returns a value that is a list of patterns for the names of tools, at least one.
func globs(to *[]string) setting.Words {
	return setting.Words{To: to, Check: globSyntax, Empty: `name a tool, or write ["*"] for all`}
}

// globSyntax returns an error if s has pattern syntax that package glob does not support, or is two
// lines of a YAML list: the second is a part of the first if it is indented further.
func globSyntax(s string) error {
	if strings.Contains(s, " - ") {
		return fmt.Errorf(`%q is one text: indent all names of the list alike, or write ? for a dash that belongs to a name`, s)
	}
	if strings.ContainsAny(s, `[]{}\`) {
		return fmt.Errorf(`%q: a pattern has only * for any characters and ? for one: write a pattern for each name`, s)
	}
	return nil
}
