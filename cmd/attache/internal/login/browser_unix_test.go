//go:build unix

package login

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/internal/testkit"
)

// Control-C ends the login, and not the browser with all its pages.
func TestBrowserIsNotInterrupted(t *testing.T) {
	dir := t.TempDir()
	script, file := filepath.Join(dir, "browser"), filepath.Join(dir, "pid")
	testkit.Check(t, os.WriteFile(script, []byte("#!/bin/sh\necho $$ > "+file+".new\nmv "+file+".new "+file+"\nexec sleep 60\n"), 0o700))
	if !openBrowser(cli.Process{Env: append([]string{"BROWSER=" + script}, os.Environ()...)}, "https://example.com") {
		t.Fatal("no browser was started")
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		id, err := strconv.Atoi(strings.TrimSpace(string(text)))
		testkit.Check(t, err)
		defer syscall.Kill(id, syscall.SIGKILL)
		if group, err := syscall.Getpgid(id); err != nil || group == syscall.Getpgrp() {
			t.Errorf("the browser is in the group of attache: %d, %v", group, err)
		}
		return
	}
	t.Error("the browser did not start")
}
