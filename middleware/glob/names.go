package glob

import "strings"

// Names caches for each name the rules whose patterns match it, so that a rule for other
// tools costs a call nothing. It must be used by one goroutine at a time.
type Names[T any] struct {
	// All is the result for a name that is too long for the cache: every rule may match it.
	All T
	// Find finds the result for a name.
	Find func(name string) T

	cache map[string]T
}

// Bounds of the cache. The client chooses the names.
const (
	maxCached     = 500
	maxCachedName = 256 // bytes
)

// Of returns the result for a name.
func (n *Names[T]) Of(name string) T {
	if found, ok := n.cache[name]; ok {
		return found
	}
	return n.add(name)
}

func (n *Names[T]) add(name string) T {
	if len(name) > maxCachedName {
		return n.All
	}
	if len(n.cache) >= maxCached {
		clear(n.cache)
	}
	if n.cache == nil {
		n.cache = map[string]T{}
	}
	found := n.Find(name)
	// The name may be a slice of a frame, which must not be kept in memory.
	n.cache[strings.Clone(name)] = found
	return found
}
