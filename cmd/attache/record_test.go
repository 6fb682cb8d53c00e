package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/proxy"
)

func TestRecordingIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	r, err := startRecording(process{}, &Settings{Record: path}, randomPrefix(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r.watch(proxy.ClientIn, []byte("x\n"))
	r.end()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("mode %v", mode)
	}
}

// A disk that is full warns once and ends nothing.
func TestRecordingToAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full")
	}
	var log strings.Builder
	r, err := startRecording(process{}, &Settings{Record: "/dev/full"}, randomPrefix(), nil, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		r.watch(proxy.ClientIn, []byte("x\n"))
	}
	r.end()
	if n := strings.Count(log.String(), "the recording stops"); n != 1 {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}

// Variables whose names say so are secrets; what stands under other names may
// be anything.
func TestRecordSecrets(t *testing.T) {
	p := process{Env: []string{"HOME=/home/alice", "GITHUB_TOKEN=gt", "PATH=/bin", "DB_PASSWORD=pw", "X"}, Stdin: strings.NewReader(""), Stdout: io.Discard}
	s := &Settings{Server: ServerSettings{Env: map[string]string{"OPENAI_API_KEY": "ok", "LANG": "C"}}}
	got := recordSecrets(p, s, []string{"key"})
	if text := strings.Join(got.Values, ","); text != "key,gt,pw,ok" || got.Home != "/home/alice" {
		t.Errorf("secrets %q, home %q", text, got.Home)
	}
}
