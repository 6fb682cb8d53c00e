//go:build !unix

package status

// isOfOther returns false: this system has no XDG_RUNTIME_DIR.
func isOfOther(string) bool { return false }
