package identity

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestFullDisk(t *testing.T) {
	err := keyFile.error("keys.yaml", &fs.PathError{Op: "write", Path: "keys.yaml.new", Err: syscall.ENOSPC})
	if text := err.Error(); !strings.HasSuffix(text, ": make room for it") {
		t.Error(text)
	}
}
