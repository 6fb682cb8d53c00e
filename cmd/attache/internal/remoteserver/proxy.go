package remoteserver

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/internal/loopback"
)

// proxy returns a function like http.ProxyFromEnvironment. If the variable is not a URL, that function returns a host
// called "http", or no proxy; this one returns an error. If there is no proxy and NO_PROXY is set, it returns no error:
// NO_PROXY may be the reason, and only http.ProxyFromEnvironment knows its rules.
func proxy(p cli.Process) func(*http.Request) (*url.URL, error) {
	exempts := p.Getenv("NO_PROXY")+p.Getenv("no_proxy") != ""
	invalid := map[string]string{"http": invalidProxy(p, "http"), "https": invalidProxy(p, "https")}
	return func(r *http.Request) (*url.URL, error) {
		u, err := http.ProxyFromEnvironment(r)
		used := u != nil || !exempts && !loopback.Is(r.URL.Hostname())
		if name := invalid[r.URL.Scheme]; used && name != "" {
			return nil, fmt.Errorf(`%s is not a URL: percent-encode special characters in its user and password ("%%" is %%25, "#" is %%23, a space is %%20)`, name)
		}
		return u, err
	}
}

// invalidProxy returns the name of the variable that names the proxy for a scheme, if its value is not a URL, or is
// one whose host is a part of the user or password.
func invalidProxy(p cli.Process, scheme string) string {
	upper := strings.ToUpper(scheme) + "_PROXY"
	for _, name := range []string{upper, strings.ToLower(upper)} {
		value := p.Getenv(name)
		if value == "" {
			continue
		}
		if !strings.Contains(value, "://") {
			value = "http://" + value // as package http does
		}
		u, err := url.Parse(value)
		if err != nil || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") { // the host is a part of the user or password
			return name
		}
		return ""
	}
	return ""
}
