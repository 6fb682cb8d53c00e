package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// attache runs the program in this process and returns its output and its exit status.
func attache(t *testing.T, env []string, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs strings.Builder
	status = run(context.Background(), cli.Process{Args: args, Env: env, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	return out.String(), errs.String(), status
}

// An endpoint that accepts one token.
func endpoint(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer the-token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Query().Get("scope") != "acme" || r.URL.Query().Get("workspace") != "ws-1":
			w.WriteHeader(http.StatusBadRequest)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"policies": [{"name": "tests", "position": "prepend", "text": "Write them.", "inherited": true}], "objectives": []}`))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/effective"
}

func TestPolicyEndpoint(t *testing.T) {
	flags := []string{"--policy", endpoint(t) + "?token=in-the-address", "--scope", "acme", "--workspace-id", "ws-1"}
	key := []string{"ATTACHE_API_KEY=the-token"}
	wrong := []string{"ATTACHE_API_KEY=another-token"}
	tests := []struct {
		name, command  string
		env            []string
		stdout, stderr string
		status         int
	}{
		{"show", "show", key, "  - [prepend] tests: Write them. (inherited)\n", "", 0},
		{"check", "check", key, `has 1 policy and 0 objectives for scope "acme"`, "", 0},
		{"show, wrong key", "show", wrong, "", "give a key it knows in ATTACHE_API_KEY", cli.ExitFailure},
		{"check, wrong key", "check", wrong, "", "give a key it knows in ATTACHE_API_KEY", cli.ExitFailure},
		{"show, no key", "show", nil, "", "give a key it knows in ATTACHE_API_KEY", cli.ExitFailure},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stdout, stderr, status := attache(t, test.env, append([]string{"policy", test.command}, flags...)...)
			if status != test.status || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) {
				t.Errorf("status %d, want %d\nstdout: %s\nstderr: %s", status, test.status, stdout, stderr)
			}
			if test.stderr == "" && stderr != "" {
				t.Errorf("stderr: %s", stderr)
			}
			if strings.Contains(stdout+stderr, "another-token") || strings.Contains(stdout+stderr, "in-the-address") {
				t.Error("the key, or the token in the address, was shown")
			}
		})
	}
}
