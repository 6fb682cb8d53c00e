package clientprocess

import (
	"os"
	"strings"
	"testing"
)

// Processes with the same id in two PID namespaces, which start in the same tick, have different names.
func TestNamespace(t *testing.T) {
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Skip(err)
	}
	if at, err := began(os.Getpid()); err != nil || !strings.Contains(at, namespace) {
		t.Errorf("the start of this process is %q (%v), without its namespace %s", at, err, namespace)
	}
}
