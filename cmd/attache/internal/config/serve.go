package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// ServeSettings configure attache serve.
type ServeSettings struct {
	Listen, PublicURL, Path, Admin string
	Origins, Hosts, Scopes         []string
	Cert, Key                      string // files, absolute; both or none
	Idle, Drain                    time.Duration
	Limits                         ServeLimits
}

// ServeLimits bound what attache serve holds at once.
type ServeLimits struct {
	Sessions, PerPrincipal, Children, InFlight int
	Body                                       int64
}

// ServeCommand is the name of the command that has the flags of serve.
const ServeCommand = "serve"

func defaultServe() ServeSettings {
	return ServeSettings{
		Listen: "127.0.0.1:8333", Path: "/mcp", Idle: 30 * time.Minute, Drain: 30 * time.Second,
		Limits: ServeLimits{Sessions: 1000, PerPrincipal: 50, Children: 200, InFlight: 10_000, Body: 8 << 20},
	}
}

func serveOptions(s *Settings) []setting.Option {
	o, l := &s.Serve, &s.Serve.Limits
	const most = 1_000_000
	return []setting.Option{
		{Key: "server.command", Help: "the command that starts the server, as a list, for attache serve without one behind \"--\"", Value: setting.Words{To: &s.Server.Command, Check: setting.NotEmpty}},
		{Key: "serve.listen", Flag: "listen", Command: ServeCommand, Hint: "ADDRESS", Help: "where attache serve listens: host and port; other than loopback only with keys or tokens", Value: setting.Text(&o.Listen, listenAddress)},
		{Key: "serve.public_url", Help: "the URL that clients use, where a reverse proxy stands in front; of several servers its beginning", Value: setting.Text(&o.PublicURL, publicURL)},
		{Key: "serve.path", Help: "the path of the endpoint; of several servers each has its name as the path", Value: setting.Text(&o.Path, urlPath)},
		{Key: "serve.admin", Help: "where health, metrics and profiles are served: a loopback host and port; default: nowhere", Value: setting.Text(&o.Admin, loopbackAddress)},
		{Key: "serve.origins", Help: "origins of web pages that may send requests, such as https://app.example.com", Value: setting.Words{To: &o.Origins, Check: origin}},
		{Key: "serve.hosts", Help: "names that requests may be sent to, besides loopback and that of public_url", Value: setting.Words{To: &o.Hosts, Check: setting.NotEmpty}},
		{Key: "serve.scopes", Help: "permissions that a credential needs for any request, beside what rules say of calls", Value: setting.Words{To: &o.Scopes, Check: scope}},
		{Key: "serve.tls.cert", Help: "file with the certificate; read again when it changes", Value: setting.Path(&o.Cert)},
		{Key: "serve.tls.key", Help: "file with the certificate's key", Value: setting.Path(&o.Key)},
		{Key: "serve.idle", Help: "how long a session is kept that nobody uses", Value: setting.Duration(&o.Idle, time.Second)},
		{Key: "serve.drain", Help: "how long the end waits for calls in flight", Value: setting.Duration(&o.Drain, 0)},
		{Key: "serve.limits.sessions", Help: "how many sessions there may be at once", Value: setting.Count(&l.Sessions, 1, most)},
		{Key: "serve.limits.per_principal", Help: "how many of them one principal may have", Value: setting.Count(&l.PerPrincipal, 1, most)},
		{Key: "serve.limits.children", Help: "how many processes may run at once", Value: setting.Count(&l.Children, 1, most)},
		{Key: "serve.limits.in_flight", Help: "how many requests may be served at once", Value: setting.Count(&l.InFlight, 1, most)},
		{Key: "serve.limits.body", Help: "how large a message of a client may be", Value: setting.Size(&l.Body, 1<<10, 1<<30)},
	}
}

// listenAddress accepts a host and a port, which may be the name of a service.
func listenAddress(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q is not an address: write a host and a port, such as 127.0.0.1:8333", s)
	}
	return nil
}

// loopbackAddress accepts a host of the loopback interface and a port.
func loopbackAddress(s string) error {
	if s == "" {
		return nil
	}
	if err := listenAddress(s); err != nil {
		return err
	}
	if !IsLoopback(s) {
		return fmt.Errorf("%q is not on the loopback interface: whoever reaches it sees what attache does: write 127.0.0.1 and a port", s)
	}
	return nil
}

// IsLoopback reports whether an address to listen on is reached from this machine alone.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func publicURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fmt.Errorf("%q is not the URL of an endpoint: write it as clients do, such as https://mcp.example.com/mcp", s)
	}
	return nil
}

func urlPath(s string) error {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, "{} ?#%") {
		return fmt.Errorf("%q is not a path: write one that begins with a slash, such as /mcp", s)
	}
	return nil
}

// origin accepts the origin of a web page. "*" is none: any page of a browser could then
// use what the browser's user may use.
func origin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme == "" || s != u.Scheme+"://"+u.Host {
		return fmt.Errorf("%q is not an origin: write scheme, host and port, such as https://app.example.com", s)
	}
	return nil
}

// scope accepts what may stand in a list of scopes (RFC 6749, appendix A.4).
func scope(s string) error {
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == '"' || c == '\\' || c > '~' }) {
		return fmt.Errorf("%q is not a scope: write printable ASCII without blanks and quotes, such as mcp:use", s)
	}
	return nil
}

// CheckServe returns which settings of serve contradict each other.
func CheckServe(s *Settings) (all setting.Problems) {
	o := &s.Serve
	if (o.Cert == "") != (o.Key == "") {
		at := s.Origin("serve.tls.cert")
		if o.Cert == "" {
			at = s.Origin("serve.tls.key")
		}
		all.Add(at, "serve.tls: name both the certificate (cert) and its key (key)")
	}
	return all
}

// ServedServers returns the names of the entries of servers that have a command or the address
// of a remote server, in the order of the file.
func ServedServers(s *Settings) []string {
	var names []string
	for _, e := range s.Servers {
		if (sets(&e, "server.command") || sets(&e, "server.url")) && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}
