package front

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// admit checks where a request comes from and who sends it. It reports false if the
// request has been answered.
func (x *exchange) admit() bool {
	if !x.hostAllowed() {
		x.refuse(http.StatusForbidden, nil, wire.CodeInvalidRequest, "refused: this name is not one of this server's; the operator can add it to serve.hosts")
		return false
	}
	origin, sent := x.r.Header["Origin"]
	if sent && (len(origin) != 1 || !x.originAllowed(origin[0])) {
		x.refuse(http.StatusForbidden, nil, wire.CodeInvalidRequest, "refused: pages of this origin may not use this server; the operator can add it to serve.origins")
		return false
	}
	if sent {
		x.allowOrigin(origin[0])
	}
	if x.r.Method == http.MethodOptions {
		x.preflight(sent)
		return false
	}
	return x.authenticate()
}

// localAddr returns the address that the connection came to, the zero Addr if that is
// not known.
func (x *exchange) localAddr() netip.AddrPort {
	if addr, ok := x.r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return addr.AddrPort()
	}
	return netip.AddrPort{}
}

// hostAllowed checks the name that the client used. A page whose name was made to point
// to the loopback interface (DNS rebinding) has the name it was loaded from.
func (x *exchange) hostAllowed() bool {
	host := hostname(x.r.Host)
	if slices.ContainsFunc(x.f.o.Hosts, func(h string) bool {
		return strings.EqualFold(h, host) || strings.EqualFold(h, x.r.Host)
	}) {
		return true
	}
	if x.localAddr().Addr().Unmap().IsLoopback() {
		return IsLoopbackHost(x.r.Host)
	}
	return len(x.f.o.Hosts) == 0
}

// IsLoopbackHost reports whether a Host header names the loopback interface.
func IsLoopbackHost(header string) bool {
	host := hostname(header)
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// hostname returns the name in a Host header, without port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

// originAllowed checks the page that a browser sends a request for.
func (x *exchange) originAllowed(origin string) bool {
	if slices.Contains(x.f.o.Origins, origin) {
		return true
	}
	at := x.localAddr()
	if !at.Addr().Unmap().IsLoopback() {
		return false
	}
	scheme := "http"
	if x.r.TLS != nil {
		scheme = "https"
	}
	for _, name := range []string{"127.0.0.1", "localhost", "[::1]"} {
		if origin == fmt.Sprintf("%s://%s:%d", scheme, name, at.Port()) {
			return true
		}
	}
	return false
}

// allowOrigin lets a page of the origin read the response, also one that refuses.
func (x *exchange) allowOrigin(origin string) {
	h := x.w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, MCP-Protocol-Version, Last-Event-Id, WWW-Authenticate, Retry-After")
}

// preflight answers the question of a browser what it may send, which has no credential.
func (x *exchange) preflight(cors bool) {
	h := x.w.Header()
	h.Set("Allow", "GET, POST, DELETE, OPTIONS")
	if cors && x.r.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
		h.Add("Vary", "Access-Control-Request-Headers")
		h.Set("Access-Control-Max-Age", "7200")
		if names := requestedHeaders(x.r.Header.Values("Access-Control-Request-Headers")); names != "" {
			h.Set("Access-Control-Allow-Headers", names)
		}
	}
	x.finish(http.StatusNoContent)
}

// requestedHeaders returns those of the names that a client of MCP may send. They are
// listed by name, as a "*" does not cover Authorization.
func requestedHeaders(lines []string) string {
	var names []string
	for _, name := range strings.Split(strings.Join(lines, ","), ",") {
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

// authenticate finds out who sends the request. A credential counts in the header alone,
// and on each request: a session id proves nothing.
func (x *exchange) authenticate() bool {
	scheme, credential, _ := strings.Cut(x.r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		credential = ""
	}
	x.credential = textproto.TrimString(credential)
	if x.f.o.Authenticate == nil {
		x.credential = ""
		return true
	}
	if x.credential == "" {
		x.challenge(http.StatusUnauthorized, "", "send an API key or a token in the header Authorization, behind the word Bearer")
		return false
	}
	who, err := x.f.o.Authenticate(x.r.Context(), x.credential)
	switch {
	case errors.Is(err, ErrUnavailable):
		x.f.log.Warn("a request was refused: nobody can be identified now", "err", err)
		x.refuse(http.StatusServiceUnavailable, nil, wire.CodeInternalError, "credentials cannot be checked now: try again")
		return false
	case errors.Is(err, ErrScope):
		x.f.log.Info("a request was refused", "err", err)
		x.challenge(http.StatusForbidden, "insufficient_scope", "the credential has too few rights for this server")
		return false
	case err != nil:
		x.f.log.Info("a request was refused: its credential is not accepted", "err", err)
		x.challenge(http.StatusUnauthorized, "invalid_token", "the credential is unknown, expired or revoked")
		return false
	}
	x.who = who
	return true
}

// challenge answers a request whose credential does not do, and says what would.
func (x *exchange) challenge(status int, code, why string) {
	var fields []string
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, fmt.Sprintf("%s=%q", name, value))
		}
	}
	add("resource_metadata", x.f.o.Metadata)
	add("scope", x.f.o.Scope)
	if add("error", code); code != "" {
		add("error_description", why)
	}
	x.w.Header().Set("WWW-Authenticate", strings.TrimSpace("Bearer "+strings.Join(fields, ", ")))
	x.refuse(status, nil, wire.CodeInvalidRequest, why)
}
