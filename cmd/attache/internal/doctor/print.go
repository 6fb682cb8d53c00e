package doctor

import (
	"strings"
)

// mark begins a line of a finding.
func mark(l level) string {
	return "  " + string(l) + strings.Repeat(" ", max(1, 9-len(l)))
}
