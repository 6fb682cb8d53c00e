package front

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/proxy/front/internal/limit"
	"github.com/attache-mcp/attache/proxy/front/internal/origin"
	"github.com/attache-mcp/attache/proxy/wire"
)

// IsLoopbackHost reports whether a Host header names the loopback interface.
func IsLoopbackHost(header string) bool { return origin.IsLoopbackHost(header) }

// admit checks Host, Origin and the credential of a request. It reports false if it has answered the
// request. It does so for every method and before anything else, so that a page or a person without rights
// learns nothing from the other refusals, such as which sessions there are.
func (x *exchange) admit() bool {
	addr, _ := x.r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	at := addr.AddrPort() // works on nil, too
	// A page can give its name the address of this machine (DNS rebinding). Its requests then have
	// that name as their host.
	if !origin.HostAllowed(x.r.Host, x.f.o.Hosts, at.Addr()) {
		x.logRefusal(&x.f.refused.address, slog.LevelInfo, fmt.Errorf("the host %.100q is not in serve.hosts", x.r.Host))
		x.refuse(http.StatusForbidden, nil, wire.CodeInvalidRequest, "refused: this name is not one of this server's; the operator can add it to serve.hosts")
		return false
	}
	from, sent := x.r.Header["Origin"]
	// Browsers send Origin: a page of another site must not use a server on this machine.
	if sent && (len(from) != 1 || !slices.Contains(x.f.o.Origins, from[0]) && !origin.IsLocal(from[0], at, x.r.TLS != nil)) {
		x.logRefusal(&x.f.refused.address, slog.LevelInfo, fmt.Errorf("the origin %.100q is not in serve.origins", strings.Join(from, ", ")))
		x.refuse(http.StatusForbidden, nil, wire.CodeInvalidRequest, "refused: pages of this origin may not use this server; the operator can add it to serve.origins")
		return false
	}
	if sent {
		origin.Allow(textproto.MIMEHeader(x.w.Header()), from[0])
	}
	// A preflight carries no credential, so it is answered before that is checked.
	if x.r.Method == http.MethodOptions {
		origin.Preflight(textproto.MIMEHeader(x.w.Header()), textproto.MIMEHeader(x.r.Header), sent)
		x.finish(http.StatusNoContent)
		return false
	}
	return x.authenticate()
}

// authenticates reports whether requests need a principal. Without it, all clients are the principal "".
func (f *Front) authenticates() bool {
	return f.o.Authenticate != nil || f.o.AuthenticateRequest != nil
}

// authenticate sets x.who, or refuses the request and returns false. The front calls it for each request, because a
// session id does not prove who sent the request. authenticate reads a bearer credential only from the header, because
// proxies log the query of a URL (specification, basic/authorization, "Token Requirements").
func (x *exchange) authenticate() bool {
	if !x.f.authenticates() {
		return true
	}
	if scheme, credential, _ := strings.Cut(x.header("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		x.credential = textproto.TrimString(credential)
	}
	// AuthenticateRequest may find a credential elsewhere, such as in a cookie.
	if x.credential == "" && x.f.o.AuthenticateRequest == nil {
		x.challenge(http.StatusUnauthorized, "", "send an API key or a token in the header Authorization, after the word Bearer")
		return false
	}
	var err error
	if ask := x.f.o.AuthenticateRequest; ask != nil {
		x.who, err = ask(x.r)
	} else {
		x.who, err = x.f.o.Authenticate(x.r.Context(), x.credential)
	}
	switch {
	case errors.Is(err, ErrUnavailable):
		x.logRefusal(&x.f.refused.unchecked, slog.LevelWarn, err)
		x.busy(nil, "the credential cannot be checked at the moment: try again")
	case errors.Is(err, ErrScope):
		x.logRefusal(&x.f.refused.credential, slog.LevelInfo, err)
		x.challenge(http.StatusForbidden, "insufficient_scope", "the credential has too few rights for this server")
	case errors.Is(err, ErrNoCredential):
		x.f.log.DebugContext(x.r.Context(), "a request was refused", "err", err, "from", x.r.RemoteAddr)
		x.challenge(http.StatusUnauthorized, "", "the request has no credential that is accepted here")
	case err != nil:
		x.logRefusal(&x.f.refused.credential, slog.LevelInfo, fmt.Errorf("its credential is not accepted: %w", err))
		code, why := "invalid_token", "the credential is unknown, expired or revoked"
		if x.credential == "" { // no token that could be invalid: RFC 6750, section 3.1
			code, why = "", "the request has no credential that is accepted here"
		}
		x.challenge(http.StatusUnauthorized, code, why)
	case x.who.ID == "": // clients need no credential, so nobody has checked it
		x.credential = ""
	}
	return err == nil
}

// logRefusal logs why a request was refused, at the level that kind returns. first is the level of the
// first request of a kind in a minute.
func (x *exchange) logRefusal(kind *limit.Refusals, first slog.Level, err error) {
	// A client that tries again and again must not fill the log.
	level, last := slog.LevelDebug, false
	if x.r.Context().Err() == nil { // otherwise the client has disconnected, so nobody was refused
		level, last = kind.Add(first)
	}
	if last {
		err = fmt.Errorf("%w (more within a minute are logged at debug level)", err)
	}
	x.f.log.Log(x.r.Context(), level, "a request was refused", "err", err, "from", x.r.RemoteAddr)
}

// challenge refuses a request whose credential is missing or not accepted, with the header
// WWW-Authenticate. resource_metadata (RFC 9728, section 5.1) tells a client which issuer to ask for a token, and
// scope tells it which scopes to ask for. code is the error of RFC 6750, section 3.1, "" for a request without a
// credential.
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
