package proxytest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/replay"
)

// Replay plays the recorded sessions in the files that match pattern through the
// relay with the given layers. It fails the test for each line to the server or the
// client that differs from the recording. See package record for how to record a
// session; `attache replay --update` rewrites the files.
//
// All sessions share the layers: use [ReplayWith] if each session needs new ones.
func Replay(t *testing.T, pattern string, layers ...middleware.Layer) {
	t.Helper()
	ReplayWith(t, pattern, func(testing.TB, string) proxy.Options { return proxy.Options{Layers: layers} })
}

// ReplayWith plays each file as a subtest, with the options that setup returns for it.
func ReplayWith(t *testing.T, pattern string, setup func(t testing.TB, file string) proxy.Options) {
	t.Helper()
	for _, file := range matching(t, pattern) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := record.Read(bytes.NewReader(data))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			r, err := replay.Play(t.Context(), s, replay.Options{Proxy: setup(t, file)})
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, d := range r.Differences {
				t.Errorf("%s: %s", file, d)
			}
		})
	}
}
