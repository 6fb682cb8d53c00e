//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A key that nobody has read must not stay valid.
func TestKeyForClosedPipe(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe()
	check(t, err)
	defer out.Close()
	in.Close()
	file := filepath.Join(t.TempDir(), "config.yaml")
	check(t, os.WriteFile(file, []byte("log: {level: info}\n"), 0o600))
	var said bytes.Buffer
	create := exec.Command("attache", "key", "create", "--config", file, "--user", "ada")
	create.Stdout, create.Stderr = out, &said
	err = create.Run()
	if create.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "the key could not be printed and was revoked") {
		t.Errorf("got %v and %q", err, said.String())
	}
	list, err := exec.Command("attache", "key", "list", "--config", file).CombinedOutput()
	if err != nil || !strings.Contains(string(list), " revoked ") {
		t.Errorf("got %v and the keys\n%s", err, list)
	}
}
