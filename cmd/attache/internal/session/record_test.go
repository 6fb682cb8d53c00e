package session

import (
	"log/slog"
	"os"
	"path/filepath"
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
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %v", mode)
	}
}

// A full disk causes one warning and does not end the session.
func TestRecordingToAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	var log strings.Builder
	r, err := startRecording(cli.Process{}, &config.Settings{Record: "/dev/full"}, proxy.RandomIDPrefix(), nil, slog.New(slog.NewTextHandler(&log, nil)))
	check(t, err)
	for range 10 {
		r.watch(proxy.ClientIn, []byte("x\n"))
	}
	r.end()
	if n := strings.Count(log.String(), "the recording stops"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}
