package config

import (
	"io"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// Only variables whose names look like those of secrets are secrets.
func TestRecordSecrets(t *testing.T) {
	p := cli.Process{Env: []string{"HOME=/home/alice", "GITHUB_TOKEN=gt", "PATH=/bin", "DB_PASSWORD=pw", "X"}, Stdin: strings.NewReader(""), Stdout: io.Discard}
	s := &Settings{Server: ServerSettings{Env: map[string]string{"OPENAI_API_KEY": "ok", "LANG": "C"}}}
	got := Secrets(p, s, []string{"key"})
	if text := strings.Join(got.Values, ","); text != "key,gt,pw,ok" || got.Home != "/home/alice" {
		t.Errorf("secrets %q, home %q", text, got.Home)
	}
}

// Of the headers for the collector, those are secrets whose names say so, and long ones.
func TestCollectorSecrets(t *testing.T) {
	for headers, want := range map[string]string{
		"authorization=Bearer%20marked-a, stream-name=default":   "Bearer marked-a|marked-a",
		"api-key=marked-a,x-honeycomb-team=marked-and-very-long": "marked-a||marked-and-very-long|",
		"api-key=%zz": "%zz|",
		"":            "",
	} {
		for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
			got := Secrets(cli.Process{Env: []string{name + "=" + headers}}, &Settings{}, nil)
			if text := strings.Join(got.Values, "|"); text != want {
				t.Errorf("%s=%s: secrets %q, want %q", name, headers, text, want)
			}
		}
	}
}
