package clientprocess

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
)

// Two children of this process return the same name for it, which differs from that of its own parent.
func TestName(t *testing.T) {
	if os.Getenv("CLIENTPROCESS_TEST") != "" {
		_, _ = os.Stdout.WriteString(Name() + "\n")
		os.Exit(0)
	}
	var names [2][]byte
	for i := range names {
		cmd := exec.Command(os.Args[0], "-test.run=^TestName$")
		cmd.Env = append(os.Environ(), "CLIENTPROCESS_TEST=1")
		var err error
		if names[i], err = cmd.Output(); err != nil {
			t.Fatal(err)
		}
		names[i] = bytes.TrimSpace(names[i])
	}
	if len(names[0]) == 0 || !bytes.Equal(names[0], names[1]) || string(names[0]) == Name() {
		t.Errorf("two children have the names %q and %q for this process, which has %q for its own parent", names[0], names[1], Name())
	}
}
