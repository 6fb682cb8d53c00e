package login

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/oauth2"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/internal/loopback"
)

// stepTime is the timeout of a single request to an authorization server. maxMetadata is the maximum
// size of a metadata document in bytes.
const (
	stepTime    = 30 * time.Second
	maxMetadata = 1 << 20
)

// Client returns the HTTP client for metadata and tokens. The server chooses their addresses, so it
// must not be able to choose one in the user's own network. The client connects only to public
// addresses, the host of the server, and the host of the issuer in the configuration.
func (o *Options) Client() *http.Client {
	g := &guard{open: o.Transport, public: o.Transport.Clone()}
	for _, address := range []string{o.URL, o.Issuer} {
		if u, err := url.Parse(address); err == nil && address != "" {
			g.hosts = append(g.hosts, u.Hostname())
		}
	}
	if u, err := url.Parse(o.URL); err == nil {
		g.local = loopback.Is(u.Hostname())
	}
	// Control gets the address that a name was resolved to, so that the name cannot change its meaning between
	// the check and the connection.
	dialer := &net.Dialer{Timeout: stepTime, Control: func(_, address string, _ syscall.RawConn) error { return checkResolved(address) }}
	g.public.DialContext = dialer.DialContext
	return &http.Client{Transport: g, Timeout: stepTime, CheckRedirect: checkRedirect}
}

// fakeAddresses are the addresses that local proxies, such as Clash and sing-box, return for all names. Such
// an address in a URL, without a name, stays refused.
var fakeAddresses = netip.MustParsePrefix("198.18.0.0/15")

// checkResolved returns an error for the address of a name that is not public.
func checkResolved(address string) error {
	host, _, _ := net.SplitHostPort(address)
	if ip, err := netip.ParseAddr(host); err != nil || !isPublic(ip) && !fakeAddresses.Contains(ip) {
		return fmt.Errorf("%s: %w", host, errPrivate)
	}
	return nil
}

// errPrivate is returned for a private address that a public server chose.
var errPrivate = errors.New("this is not a public address; if it is right, set server.oauth.issuer")

// A guard is a transport that sends requests only to allowed addresses. public checks addresses after names
// were resolved, open does not.
type guard struct {
	open, public *http.Transport
	hosts        []string // allowed at any address
	local        bool     // the server is on this machine, so others may be too
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := g.send(r)
	if err != nil {
		return nil, short(err)
	}
	if err := labelJSON(resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// send sends a request with open if its host comes from the configuration, or if a proxy is used, which
// resolves names itself. Otherwise it uses public.
func (g *guard) send(r *http.Request) (*http.Response, error) {
	known, err := g.admits(r.URL)
	if err != nil {
		return nil, err
	}
	if known {
		return g.open.RoundTrip(r)
	}
	if g.open.Proxy != nil {
		if proxy, err := g.open.Proxy(r); err != nil || proxy != nil {
			return g.open.RoundTrip(r) // the proxy decides which addresses are allowed
		}
	}
	return g.public.RoundTrip(r)
}

// admits returns an error if attache and the browser must not open the address. known is true for a
// host from the configuration, which may be in a private network.
func (g *guard) admits(u *url.URL) (known bool, err error) {
	host := u.Hostname()
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback.Is(host)) {
		return false, fmt.Errorf("%s is not reached: it is neither https nor on this machine", u.Redacted())
	}
	if g.local && loopback.Is(host) || slices.ContainsFunc(g.hosts, func(known string) bool { return strings.EqualFold(host, known) }) {
		return true, nil
	}
	if ip, err := netip.ParseAddr(host); loopback.Is(host) || err == nil && !isPublic(ip) {
		return false, fmt.Errorf("%s: %w", host, errPrivate)
	}
	return false, nil
}

// mappedIPv4 has the IPv4 addresses that networks with IPv6 only (DNS64) return for names without an IPv6
// address. The last four bytes are the IPv4 address.
var mappedIPv4 = netip.MustParsePrefix("64:ff9b::/96")

// isPublic reports whether an address is public. Package netip counts the special ranges below as global
// unicast addresses.
func isPublic(ip netip.Addr) bool {
	ip = ip.WithZone("") // no prefix contains an address with a zone
	if all := ip.As16(); mappedIPv4.Contains(ip) {
		ip = netip.AddrFrom4([4]byte(all[12:]))
	}
	// Shared address space, protocol assignments, benchmarks, reserved, IPv4 in IPv6, and site-local (IANA's registries of special addresses).
	for _, special := range []string{"100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "64:ff9b:1::/48", "2002::/16", "fec0::/10"} {
		if netip.MustParsePrefix(special).Contains(ip.Unmap()) {
			return false
		}
	}
	return ip.Unmap().IsGlobalUnicast() && !ip.Unmap().IsPrivate()
}

// checkRedirect allows redirects of GET requests. Other requests contain secrets and are not
// redirected. The guard checks the address of each redirect.
func checkRedirect(r *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case first.Method != http.MethodGet:
		return http.ErrUseLastResponse
	case len(via) > 5:
		return errors.New("redirected too often")
	case first.URL.Scheme == "https" && r.URL.Scheme != "https":
		return errors.New("redirected from https to " + r.URL.Scheme)
	}
	return nil
}

// labelJSON sets the content type of a response that is a JSON object. Metadata in a file without an
// extension is often sent as application/octet-stream or text/plain, and the library reads a token
// response in text/plain as a form. Other clients ignore the content type. A stream of events may never
// end, so it is not read.
func labelJSON(resp *http.Response) error {
	if kind := mediaType(resp); kind == "application/json" || kind == "text/event-stream" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	resp.Body.Close()
	if err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) && json.Valid(body) {
		resp.Header.Set("Content-Type", "application/json")
	}
	return nil
}

func mediaType(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

// errAnswered is wrapped in the error for a server that answers with a 5xx status. Its text is the verb there.
var errAnswered = errors.New("answered")

// getJSON reads the document at address into v. It returns false if there is none. Many servers answer
// unknown paths with a page, so anything but JSON counts as none.
func getJSON(ctx context.Context, c *http.Client, address string, v any) (bool, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := c.Do(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 500:
		return false, fmt.Errorf("%s %w %s", r.URL, errAnswered, shown(resp.Status))
	case resp.StatusCode != http.StatusOK, mediaType(resp) != "application/json":
		return false, nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxMetadata)).Decode(v); err != nil {
		return false, fmt.Errorf("%s is not JSON: %w", r.URL, err)
	}
	return true, nil
}

// tokenError returns an error for a token request that failed. It contains no other part of the
// response. It hides sent, the code or refresh token of the request: servers with Spring Security repeat it.
func tokenError(err error, sent string) error {
	var refused *oauth2.RetrieveError
	var network *url.Error
	switch {
	case errors.As(err, &refused) && refused.ErrorCode != "":
		description := refused.ErrorDescription
		if sent != "" {
			description = strings.ReplaceAll(description, sent, "[hidden]")
		}
		return &refusedError{code: shown(refused.ErrorCode), description: shown(description)}
	case errors.As(err, &refused):
		return fmt.Errorf("the authorization server answered %s", shown(refused.Response.Status))
	case errors.As(err, &network):
		return fmt.Errorf("the authorization server cannot be reached: %w", network.Err)
	}
	return errors.New("the authorization server's answer has no token that can be read")
}

// A refusedError is an OAuth error response of an authorization server.
type refusedError struct{ code, description string }

func (e *refusedError) Error() string {
	text := "the authorization server refuses: " + e.code
	if e.description != "" {
		text += ": " + e.description
	}
	if e.code == "invalid_target" { // RFC 8707
		text += "; if it does not know the server as a resource, set server.oauth.resource"
	}
	return text
}

// short returns err or, if its text is long, its beginning: an error of a transport may quote a line of the server.
func short(err error) error {
	if text := shown(err.Error()); len(text) < len(err.Error()) {
		return errors.New(text)
	}
	return err
}

// shown returns text from a server in a form that is safe to print.
func shown(text string) string {
	text = strings.Map(func(c rune) rune {
		if c < ' ' || c >= 0x7F && c < 0xA0 {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "?"))
	return cli.Cut(text, 300)
}
