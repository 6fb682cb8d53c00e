//go:build unix && !linux

package child

// await does nothing on this system; see wait_linux.go.
func await(pid int) {}
