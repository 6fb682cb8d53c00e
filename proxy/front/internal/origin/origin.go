// Package origin decides for which hosts and from which pages a front accepts requests (specification,
// basic/transports, "Security Warning").
package origin

import (
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/internal/loopback"
)

// HostAllowed reports whether a request to a local address may have this Host header. A page whose
// name was changed to point to the loopback interface (DNS rebinding) sends the name from which it
// was loaded.
func HostAllowed(header string, allowed []string, local netip.Addr) bool {
	host := hostname(header)
	if slices.ContainsFunc(allowed, func(h string) bool {
		return strings.EqualFold(strings.Trim(h, "[]"), host) || strings.EqualFold(h, header)
	}) {
		return true
	}
	// local is the address to which the client has connected. A proxy on this machine, which passes on requests of other
	// machines, connects to it too, so the names of the proxy have to be in allowed.
	if local.Unmap().IsLoopback() {
		return loopback.Is(host)
	}
	return len(allowed) == 0
}

// IsLoopbackHost reports whether a Host header names the loopback interface.
func IsLoopbackHost(header string) bool { return loopback.Is(hostname(header)) }

// hostname returns the name in a Host header, without port and brackets.
func hostname(host string) string {
	if strings.Contains(host, ":") { // SplitHostPort allocates an error if there is no port
		if name, _, err := net.SplitHostPort(host); err == nil {
			return name
		}
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// IsLocal reports whether an origin is that of a page from the loopback address and port to which the
// request was sent. A page from another port belongs to another program of this machine. Anybody may have made
// that page, so the operator must name its origin.
func IsLocal(origin string, local netip.AddrPort, secure bool) bool {
	if !local.Addr().Unmap().IsLoopback() {
		return false
	}
	scheme := "http"
	if secure {
		scheme = "https"
	}
	return slices.ContainsFunc([]string{"127.0.0.1", "localhost", "[::1]"}, func(name string) bool {
		return origin == fmt.Sprintf("%s://%s:%d", scheme, name, local.Port())
	})
}

// Allow sets the headers that let pages of the origin read the response, even if it is a refusal. Without them, the page
// of a client would see a network error in place of a challenge or of a session id.
func Allow(h textproto.MIMEHeader, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, MCP-Protocol-Version, Last-Event-Id, WWW-Authenticate, Retry-After")
}

// Preflight sets the headers of the answer to an OPTIONS request, which has no credential. cors
// reports whether a browser sent it.
func Preflight(h, request textproto.MIMEHeader, cors bool) {
	h.Set("Allow", "GET, POST, DELETE, OPTIONS")
	if cors && request.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Add("Vary", "Access-Control-Request-Headers")
		h.Set("Access-Control-Max-Age", "7200")
		if names := allowedHeaders(request.Values("Access-Control-Request-Headers")); names != "" {
			h.Set("Access-Control-Allow-Headers", names)
		}
	}
}

// allowedHeaders returns the requested header names that an MCP client may send, for
// Access-Control-Allow-Headers. It lists names because "*" does not cover Authorization. The names come from a page,
// so it returns only known names and names that begin with Mcp-Param-.
func allowedHeaders(requested []string) string {
	var names []string
	for name := range strings.SplitSeq(strings.Join(requested, ","), ",") {
		name = textproto.TrimString(name)
		switch lower := strings.ToLower(name); lower {
		case "content-type", "accept", "authorization", "mcp-session-id", "mcp-protocol-version", "last-event-id",
			"mcp-method", "mcp-name", "traceparent", "tracestate", "baggage":
			names = append(names, name)
		default:
			if strings.HasPrefix(lower, "mcp-param-") && !strings.ContainsAny(name, " \t\r\n\"(),/:;<=>?@[\\]{}") {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, ", ")
}
