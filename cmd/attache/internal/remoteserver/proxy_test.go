package remoteserver

import (
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

func TestInvalidProxy(t *testing.T) {
	for _, c := range []struct{ env, scheme, want string }{
		{"", "https", ""},
		{"HTTPS_PROXY=http://proxy:8080", "https", ""},
		{"HTTPS_PROXY=proxy:8080", "https", ""},
		{"HTTPS_PROXY=http://ada:p%23ss@proxy:8080", "https", ""},
		{"HTTPS_PROXY=http://ada:p@ss@proxy:8080", "https", ""},
		{"HTTPS_PROXY=socks5://127.0.0.1:1080", "https", ""},
		{"HTTPS_PROXY=http://ada:p#ss@proxy:8080", "https", "HTTPS_PROXY"},
		{"HTTPS_PROXY=http://ada:p#ss@proxy:8080", "http", ""},
		{"HTTPS_PROXY=http://ada:1#ss@proxy:8080", "https", "HTTPS_PROXY"},
		{"HTTPS_PROXY=http://ada:p@s/s@proxy:8080", "https", "HTTPS_PROXY"},
		{"HTTPS_PROXY=ada:1?s@proxy:8080", "https", "HTTPS_PROXY"},
		{"HTTPS_PROXY=http://ada:p%ss@proxy:8080/", "https", "HTTPS_PROXY"},
		{"https_proxy=http://ada:p/ss@proxy:8080", "https", "https_proxy"},
		{"http_proxy=ada:p ss@proxy:8080", "http", "http_proxy"},
	} {
		if got := invalidProxy(cli.Process{Env: []string{c.env}}, c.scheme); got != c.want {
			t.Errorf("%s: %s: got %q, want %q", c.env, c.scheme, got, c.want)
		}
	}
}
