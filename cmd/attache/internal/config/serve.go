package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/internal/loopback"
)

// ServeSettings configure attache serve.
type ServeSettings struct {
	Listen, PublicURL, Path, Admin string
	Origins, Hosts                 []string
	Scopes, LoginScopes            []string
	Cert, Key                      string // absolute paths; both are set or none
	Idle, Drain                    time.Duration
	Limits                         ServeLimits
}

// ServeLimits bound the sessions, processes and messages of attache serve.
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

func (s *Settings) serveOptions() []setting.Option {
	o, l := &s.Serve, &s.Serve.Limits
	const most = 1_000_000
	return []setting.Option{
		{Key: "server.command", Help: "in an entry of servers, the command that starts the server, as a list, if attache serve has no command after \"--\"", Value: setting.Words{To: &s.Server.Command, Check: setting.NotEmpty, Empty: "name the program"}},
		{Key: "serve.listen", Flag: "listen", Command: ServeCommand, Hint: "ADDRESS", Help: "where attache serve listens: host and port; other than loopback only with keys or tokens", Value: setting.Text(&o.Listen, listenAddress)},
		{Key: "serve.public_url", Help: "the URL that clients use if attache is behind a reverse proxy; with several servers, the beginning of their URLs", Value: setting.Text(&o.PublicURL, publicURL)},
		{Key: "serve.path", Help: "the path of the endpoint; that of an entry of servers is its name", Value: setting.Text(&o.Path, urlPath)},
		{Key: "serve.admin", Help: "where health, metrics and profiles are served: a loopback host and port; default: nowhere", Value: setting.Text(&o.Admin, loopbackAddress)},
		{Key: "serve.origins", Help: "origins of web pages that may send requests, such as https://app.example.com", Value: setting.Words{To: &o.Origins, Check: origin}},
		{Key: "serve.hosts", Help: "host names that requests may have, besides that of public_url; on loopback also loopback names, elsewhere every name if neither key is set", Value: setting.Words{To: &o.Hosts, Check: hostName}},
		{Key: "serve.scopes", Help: "permissions, or OAuth scopes of a token, that a credential needs for any request, in addition to the permissions that rules require", Value: setting.Words{To: &o.Scopes, Check: scope}},
		{Key: "serve.login_scopes", Help: "OAuth scopes that clients are told to ask the issuer for besides serve.scopes, such as openid; tokens need not have them", Value: setting.Words{To: &o.LoginScopes, Check: scope}},
		{Key: "serve.tls.cert", Help: "file with the certificate; read again when it changes", Value: setting.Path(&o.Cert)},
		{Key: "serve.tls.key", Help: "file with the certificate's key", Value: setting.Path(&o.Key)},
		{Key: "serve.idle", Help: "how long an unused session is kept", Value: setting.Duration(&o.Idle, time.Second)},
		{Key: "serve.drain", Help: "how long shutdown waits for calls in flight", Value: setting.Duration(&o.Drain, 0)},
		{Key: "serve.limits.sessions", Help: "how many sessions there may be at once", Value: setting.Count(&l.Sessions, 1, most)},
		{Key: "serve.limits.per_principal", Help: "how many of them one principal may have", Value: setting.Count(&l.PerPrincipal, 1, most)},
		{Key: "serve.limits.children", Help: "how many processes may run at once", Value: setting.Count(&l.Children, 1, most)},
		{Key: "serve.limits.in_flight", Help: "how many requests may be served at once, at most half of them of one key or user", Value: setting.Count(&l.InFlight, 1, most)},
		{Key: "serve.limits.body", Help: "how large a message of a client may be", Value: setting.Size(&l.Body, 1<<10, 1<<30)},
	}
}

// listenAddress returns an error unless s is a host and a port, which may be the name of a service.
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

// loopbackAddress returns an error unless s is a loopback host and a port, or empty.
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

// IsLoopback reports whether only this machine can reach a listener on address.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopback.Is(host)
}

func publicURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" || u.User != nil ||
		strings.Contains(s, " ") || u.Port() != "" && !isPort(u.Port()) {
		return fmt.Errorf("%q is not the URL of an endpoint: write it as clients do, such as https://mcp.example.com/mcp", s)
	}
	return hostName(u.Host)
}

func urlPath(s string) error {
	if !strings.HasPrefix(s, "/") || strings.ContainsAny(s, "{} ?#%") {
		return fmt.Errorf("%q is not a path: write one that begins with a slash, such as /mcp", s)
	}
	return nil
}

// origin returns an error unless s is the origin of a web page, as browsers write it. "*" is not accepted,
// because any page could then do what the user of the browser may do.
func origin(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme == "" || strings.Contains(s, "*") || !strings.EqualFold(s, u.Scheme+"://"+u.Host) {
		return fmt.Errorf("%q is not an origin: write scheme, host and port, such as https://app.example.com", s)
	}
	// Requests have the port only if it is not that of the scheme. Apps with a scheme of their own may keep capitals.
	host := u.Host
	switch u.Scheme {
	case "https":
		host = strings.TrimSuffix(strings.ToLower(host), ":443")
	case "http":
		host = strings.TrimSuffix(strings.ToLower(host), ":80")
	}
	if written := u.Scheme + "://" + host; s != written {
		return fmt.Errorf("%q is not as browsers send it: write %s", s, written)
	}
	if !isASCII(host) {
		return fmt.Errorf("%q is not as browsers send it: write its host in ASCII, such as xn--bcher-kva.example", s)
	}
	return nil
}

// hostName returns an error if s cannot be in a Host header.
func hostName(s string) error {
	if s == "" || strings.ContainsAny(s, "/* \t") {
		return fmt.Errorf("%q is not a host name: write the one in the clients' URLs, such as mcp.example.com", s)
	}
	if !isASCII(s) {
		return fmt.Errorf("%q is not as clients send it: write it in ASCII, such as xn--bcher-kva.example", s)
	}
	return nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c > unicode.MaxASCII })
}

// scope returns an error unless s is a valid scope (RFC 6749, appendix A.4).
func scope(s string) error {
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c == '"' || c == '\\' || c > '~' }) {
		return fmt.Errorf("%q is not a scope: write printable ASCII without blanks and quotes, such as mcp:use", s)
	}
	return nil
}

// CheckServe returns settings of serve that contradict each other.
func CheckServe(s *Settings) setting.Problems {
	return s.checkPair("serve.tls", s.Serve.Cert, s.Serve.Key)
}

// CheckBearer returns a problem if a flag or a variable would send one token to servers with different origins. A
// token is for one server.
func CheckBearer(p cli.Process, servers []*Settings) (all setting.Problems) {
	header, first := authorizationVariable(p), (*Settings)(nil)
	for _, s := range servers {
		at := header
		if s.Server.Remote.BearerEnv != "" {
			at = setting.Origin{Name: s.Origin("server.bearer_env").Name}
		}
		switch {
		case at.Default() || s.Server.Remote.URL == "": // the entry names its own, or the server is a command
		case first == nil:
			first = s
		case !sameOrigin(first.Server.Remote.URL, s.Server.Remote.URL):
			all.Add(at, "%s and %s would get the same token: remove it, and name a token in the entry of each server that needs one (server.bearer_env or server.headers)", first.Server.Name, s.Server.Name)
			return all
		}
	}
	return nil
}

// checkPair returns a problem if a section names only one of a certificate and its key.
func (s *Settings) checkPair(section, cert, key string) (all setting.Problems) {
	if (cert == "") != (key == "") {
		at := s.Origin(section + ".cert")
		if cert == "" {
			at = s.Origin(section + ".key")
		}
		all.Add(at, "%s: name both the certificate (cert) and its key (key)", section)
	}
	return all
}

// ServedServers returns the names of the entries of servers that have a command or the address
// of a remote server, in the order of the file.
func ServedServers(s *Settings) []string {
	var names []string
	for _, e := range s.Servers {
		if e.served && !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}
