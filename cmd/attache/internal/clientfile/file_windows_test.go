package clientfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that another program has open is not changed, and the error says what to do.
func TestUpdateOfOpenFile(t *testing.T) {
	path := write(t, "before")
	f, err := os.Open(path)
	check(t, err)
	_, err = Update(path, filepath.Dir(path), noon, become("after"))
	if err == nil || !strings.Contains(err.Error(), "close the program that has it open") {
		t.Errorf("error %v", err)
	}
	check(t, f.Close())
	holds(t, path, "before")
	if n := len(names(t, path)); n != 1 {
		t.Errorf("%d files are there", n)
	}
}
