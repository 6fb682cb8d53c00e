package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// metadataPath begins the paths of protected resource metadata (RFC 9728).
const metadataPath = "/.well-known/oauth-protected-resource"

// needlessEscape matches an escaped letter, digit or other character that clients never escape (RFC 3986,
// section 2.3). A gateway that compares paths without decoding them would not recognise the server.
var needlessEscape = regexp.MustCompile(`%(?i:[46][1-9a-f]|[57][0-9a]|2[de]|3\d|5f|7e)`)

// handler returns the handler of client requests. Clients look for metadata at the path of the server's URL
// (RFC 9728, section 3.1), and then at the root, which can be that of a single server only. Behind a proxy
// that removes a prefix, the path of the URL is not that of the endpoint: both are served.
func (s *service) handler() http.Handler {
	paths := s.probes()
	for _, e := range s.endpoints {
		paths[e.Path] = e.traceRequests(e.front)
		if metadata := s.metadata(e); metadata != nil {
			paths[metadataPath+e.Path] = limitTime(metadata)
			paths[s.metadataURL(e).Path] = limitTime(metadata)
			if len(s.endpoints) == 1 {
				paths[metadataPath] = limitTime(metadata)
			}
		}
	}
	missing := limitTime(noServer)
	return s.logRequests(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := paths[r.URL.Path]; handler != nil && !needlessEscape.MatchString(r.URL.RawPath) {
			handler.ServeHTTP(w, r)
			return
		}
		missing(w, r)
	}))
}

// probes returns the handlers of health checks, by path.
func (s *service) probes() map[string]http.Handler {
	return map[string]http.Handler{"/healthz": limitTime(s.healthy), "/readyz": limitTime(s.ready)}
}

// maxUnserved is how many bytes of a message for an unknown path are read to find its id.
const maxUnserved = 64 << 10

// noServer answers a request for an unknown path. The error has the id of the request, because some
// clients treat an error without one as the end of the connection. Its code differs from that of a
// session that has ended, which a client would open again. It does not list the paths that exist,
// because the client has sent no credential.
func noServer(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || strings.HasPrefix(r.URL.Path, "/.well-known/") {
		notFound(w, r)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, maxUnserved))
	var id []byte
	if m := wire.Parse(wire.Client, bytes.TrimSpace(body)); m.Kind() == wire.Request && m.Plain() {
		id = m.ID()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write(wire.ErrorReply(id, wire.CodeMethodNotFound, "no MCP server has this path: correct the path of the URL; where attache serves several, each has a path of its own, and /mcp is that of a single one").Frame())
}

// notFound answers with JSON: clients request /.well-known/ addresses from every server, and some
// treat a page of HTML as a valid document.
func notFound(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte("{}"))
}

// scopes returns the scopes that clients ask the issuer for.
func (s *service) scopes() []string {
	all := slices.Clone(s.settings.Scopes)
	for _, scope := range s.settings.LoginScopes {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}

// metadata returns the handler that names the issuer whose tokens an endpoint accepts, nil if
// there is none or the endpoint's URL is not known.
func (s *service) metadata(e *endpoint) http.HandlerFunc {
	issuer := e.Settings.Identity.JWT.Issuer
	if issuer == "" || s.settings.PublicURL == "" {
		return nil
	}
	document := map[string]any{
		"resource":                 s.resource(e),
		"authorization_servers":    []string{issuer},
		"bearer_methods_supported": []string{"header"},
	}
	if scopes := s.scopes(); len(scopes) > 0 {
		document["scopes_supported"] = scopes
	}
	body, _ := json.Marshal(document) // cannot fail: all values are texts
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}
}

// resource returns the URL of an endpoint as clients see it.
func (s *service) resource(e *endpoint) string {
	if len(s.Servers) < 2 {
		return s.settings.PublicURL
	}
	path := url.URL{Path: e.Path} // a name may have a space or a percent sign
	return strings.TrimSuffix(s.settings.PublicURL, "/") + path.EscapedPath()
}

// metadataURL returns the URL of an endpoint's metadata, as clients see it.
func (s *service) metadataURL(e *endpoint) *url.URL {
	u, _ := url.Parse(s.resource(e)) // valid: it was checked with the settings
	u.Path = metadataPath + u.Path
	return u
}

// hosts returns the host names that clients may use.
func (s *service) hosts() []string {
	all := s.settings.Hosts
	if u, err := url.Parse(s.settings.PublicURL); err == nil && u.Hostname() != "" {
		all = append(all[:len(all):len(all)], u.Hostname()) // not into the memory of the settings
	}
	return all
}

func (s *service) healthy(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }

// ready answers whether attache takes clients. A database or a server that cannot be reached does not
// make it unready: that concerns all fronts alike, and clients learn more from the answer of attache. But a
// front whose database has never answered is unready. Its URL or password may be wrong, and a rolling update
// would replace all fronts that work.
func (s *service) ready(w http.ResponseWriter, _ *http.Request) {
	answer := "ok\n"
	for _, e := range s.endpoints {
		if e.front.Draining() {
			answer = "draining\n"
		} else if e.shared.Current().LacksKeys() || e.checkKeys() != nil {
			answer = "the API keys cannot be read\n"
		}
	}
	if answer != "ok\n" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = w.Write([]byte(answer))
}

// logRequests counts and logs each request when it has been answered. It is the outermost handler, so it
// also says when a request begins and ends to those who count or watch connections.
func (s *service) logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Before anything that may block, because drain waits for connections without a request.
		watched := s.arrivals.request(r)
		if watched != nil {
			watched.handle(r)
			defer watched.end()
		}
		began := time.Now()
		seen := &response{ResponseWriter: w}
		defer func() {
			s.quiet.request()
			if seen.hijacked != nil {
				s.noteWhenClosed(seen.hijacked, r, began)
				return
			}
			s.note(r.Method, r.URL.Path, r.RemoteAddr, began, seen.status, seen.bytes)
		}()
		next.ServeHTTP(seen, r)
		if r.Close && seen.hijacked == nil {
			readRest(seen, r)
		}
	})
}

// restTime bounds how long readRest reads.
const restTime = 5 * time.Second

// readRest reads the rest of the body of a refused request that has Connection: close, as from nginx.
// net/http closes such a connection with the rest unread. A proxy that is still writing then gets a reset
// before it reads the answer: it answers 502, and sends no requests to this front for a while.
func readRest(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(restTime))
	_, _ = io.Copy(io.Discard, r.Body)
}

// note counts and logs a request.
func (s *service) note(method, path, from string, began time.Time, status int, size int64) {
	took := time.Since(began)
	c := s.counts[path]
	if c == nil {
		c = s.counts[otherPaths]
	}
	c.add(method, status, took)
	if s.Log.Enabled(context.Background(), slog.LevelDebug) {
		s.Log.Debug("request", "method", method, "path", path, "status", status, "bytes", size, "took", took, "from", from)
	}
}

// noteWhenClosed calls note for a request whose handler has hijacked the connection, when the
// connection is closed. Until then it keeps no reference to the request.
func (s *service) noteWhenClosed(c *hijackedConn, r *http.Request, began time.Time) {
	method, path, from := r.Method, r.URL.Path, r.RemoteAddr
	c.whenClosed(func(size int64) { s.note(method, path, from, began, http.StatusOK, size) })
}

// writeTime is how long the write of a short answer may take.
const writeTime = 30 * time.Second

// limitTime sets deadlines for a request with a short answer. Without them, the deadline of the
// previous write on the connection would still apply, and the server could read the body without a
// deadline. The write has twice the time, because it may begin at the end of the time for the read.
func limitTime(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(writeTime))
		_ = rc.SetWriteDeadline(time.Now().Add(2 * writeTime))
		next(w, r)
	}
}
