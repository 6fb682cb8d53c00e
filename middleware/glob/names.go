package glob

import "strings"

// Names remembers what rules say of the names that come again, as far as their
// patterns decide it: then a rule that is for other tools costs a call nothing. It is
// for one goroutine.
type Names[T any] struct {
	// All is the result for a name that is too long to be remembered: every rule
	// may be for it.
	All T
	// Find finds the result for a name.
	Find func(name string) T

	kept map[string]T
}

// Names are the client's to choose, and to make up.
const (
	// maxKept is how many names are remembered.
	maxKept = 500
	// maxKeptName is how long a name may be that is remembered, in bytes.
	maxKeptName = 256
)

// Of returns the result for a name.
func (n *Names[T]) Of(name string) T {
	if found, ok := n.kept[name]; ok {
		return found
	}
	return n.keep(name)
}

func (n *Names[T]) keep(name string) T {
	if len(name) > maxKeptName {
		return n.All
	}
	if len(n.kept) >= maxKept {
		clear(n.kept)
	}
	if n.kept == nil {
		n.kept = map[string]T{}
	}
	found := n.Find(name)
	// The name may be a slice of a frame, which must not be kept in memory whole.
	n.kept[strings.Clone(name)] = found
	return found
}
