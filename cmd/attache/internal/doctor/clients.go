package doctor

import (
	"strings"
)

// namesText lists names, or says that there are none.
func namesText(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
