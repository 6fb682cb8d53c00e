package child

// This file concerns Windows only. It is built everywhere, so that its tests run everywhere.

import (
	"slices"
	"strings"
)

// lastOfEach returns env with only the last of several entries for the same variable, which is the one that getenv
// returns. Windows ignores the case of names, keeps all entries and gives a process the first one (KB 2505238): a PATH
// that the operator sets would not replace the Path that attache inherited.
func lastOfEach(env []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, entry := range slices.Backward(env) {
		// The working directory of a drive is in a variable whose name begins with an equals sign: =C:.
		end := strings.IndexByte(entry[min(1, len(entry)):], '=') + 1
		if name := strings.ToUpper(entry[:end]); !seen[name] {
			seen[name] = true
			out = append(out, entry)
		}
	}
	slices.Reverse(out)
	return out
}
