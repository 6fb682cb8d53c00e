package session

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
)

func TestRecordingIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	r, err := startRecording(cli.Process{}, &config.Settings{Record: path}, proxy.RandomIDPrefix(), nil, slog.New(slog.DiscardHandler))
	check(t, err)
	r.watch(proxy.ClientIn, []byte("x\n"))
	r.end()
	info, err := os.Stat(path)
	check(t, err)
	if mode := info.Mode().Perm(); mode != 0o600 && runtime.GOOS != "windows" {
		t.Errorf("mode %v", mode)
	}
}

// A recording names its server and overwrites no other. One without messages leaves no file. The end of a
// recording is not waited for longer than it takes.
func TestRecordingsOfOneConfiguration(t *testing.T) {
	dir := t.TempDir()
	settings := &config.Settings{Record: filepath.Join(dir, "s.jsonl"), Server: config.ServerSettings{Name: "git"}}
	var log strings.Builder
	for _, message := range []string{"one", "two", ""} {
		r, err := startRecording(cli.Process{}, settings, proxy.RandomIDPrefix(), nil, slog.New(slog.NewTextHandler(&log, nil)))
		check(t, err)
		if message != "" {
			r.watch(proxy.ClientIn, []byte(message+"\n"))
		}
		r.end()
	}
	for name, message := range map[string]string{"s.jsonl": "one", "s-2.jsonl": "two"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), message) || !strings.Contains(string(text), `"server":"git"`) {
			t.Errorf("%s: %v, %s", name, err, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "s-3.jsonl")); err == nil {
		t.Error("a session without messages leaves a recording")
	}
	if n := strings.Count(log.String(), "recording to another one"); n != 2 || strings.Contains(log.String(), "WARN") {
		t.Error(log.String())
	}
}

// A full disk causes one warning and does not end the session. attache does not remove a device at the end. The test
// records to a link to the device: a fault in the code can then remove only the link.
func TestRecordingToAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	device := filepath.Join(t.TempDir(), "full")
	check(t, os.Symlink("/dev/full", device))
	var log strings.Builder
	r, err := startRecording(cli.Process{}, &config.Settings{Record: device}, proxy.RandomIDPrefix(), nil, slog.New(slog.NewTextHandler(&log, nil)))
	check(t, err)
	for range 10 {
		r.watch(proxy.ClientIn, []byte("x\n"))
	}
	r.end()
	if n := strings.Count(log.String(), "the recording stops"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
	if _, err := os.Lstat(device); err != nil {
		t.Error(err)
	}
}
