package trust

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestFullDisk(t *testing.T) {
	err := Command{}.denied(&fs.PathError{Op: "write", Path: "trusted", Err: syscall.ENOSPC})
	if text := err.Error(); !strings.HasSuffix(text, ": make room for it") {
		t.Error(text)
	}
}
