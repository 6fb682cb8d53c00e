package login

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/attache-mcp/attache/internal/testkit"
)

// A name may resolve to an address of a local proxy, and not to a private one.
func TestU27ResolvedAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.215.14:443": true, "198.18.0.7:443": true, "[2606:2800::1]:443": true,
		"10.0.0.1:443": false, "100.64.0.1:443": false, "192.0.0.192:443": false, "240.0.0.1:443": false, "[::ffff:10.0.0.1]:443": false, "x": false,
		"[64:ff9b::808:808]:443": true, "[64:ff9b::a00:1]:443": false, "[64:ff9b::7f00:1]:443": false, // 8.8.8.8, 10.0.0.1, 127.0.0.1
		"[64:ff9b::a00:1%1]:443": false, "[2002:a00:1::1%1]:443": false, "[2606:2800::1%1]:443": true, // a zone changes nothing
	} {
		if err := checkResolved(address); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The address that a name resolves to is checked when the connection is made.
func TestPrivateName(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Check(t, err)
	defer l.Close()
	o := Options{URL: "https://mcp.example.com/mcp", Transport: &http.Transport{}}
	if _, err := o.Client().Transport.(*guard).public.DialContext(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, errPrivate) || !strings.HasSuffix(err.Error(), ": 127.0.0.1: "+errPrivate.Error()) {
		t.Errorf("error %v", err)
	}
}

// Redirects are followed a few times, not from https to http, and not with a secret. Requests to the MCP server
// stay there.
func TestRedirects(t *testing.T) {
	const a, b, local = "https://a.example/", "https://b.example/", "http://127.0.0.1/"
	for _, row := range []struct {
		method      string
		urls        []string // the last one is that of the redirect
		login, same string   // the errors
	}{
		{"GET", []string{a, a}, "", ""},
		{"GET", []string{a, b}, "", "use last response"},
		{"GET", []string{local, local}, "", ""},
		{"GET", []string{a, local}, "redirected from https to http", "use last response"},
		{"POST", []string{a, a}, "use last response", ""},
		{"GET", []string{a, a, a, a, a, a}, "", ""},
		{"GET", []string{a, a, a, a, a, a, a}, "redirected too often", "use last response"},
	} {
		var all []*http.Request
		for _, url := range row.urls {
			all = append(all, httptest.NewRequest(row.method, url, nil))
		}
		last := len(all) - 1
		for want, err := range map[string]error{"login: " + row.login: checkRedirect(all[last], all[:last]), "same: " + row.same: sameOrigin(all[last], all[:last])} {
			if _, want, _ = strings.Cut(want, ": "); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s %v: %v, want %q", row.method, row.urls, err, want)
			}
		}
	}
}

// The answer to a login is a GET of its address with its state, and has a code.
func TestAnswers(t *testing.T) {
	r := &redirect{url: &url.URL{Path: "/callback"}, state: "s", answers: make(chan url.Values, 1)}
	for _, row := range []struct {
		method, target string
		status         int
	}{
		{"POST", "/callback?state=s&code=x", 400},
		{"GET", "/other?state=s&code=x", 400},
		{"GET", "/callback?state=t&code=x", 400},
		{"GET", "/callback?state=s", 200},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(row.method, row.target, nil))
		if w.Code != row.status || len(r.answers) > 0 != (row.status == 200) {
			t.Errorf("%s %s: %d, %d answers", row.method, row.target, w.Code, len(r.answers))
		}
	}
	if code, err := checkAnswer(<-r.answers, &authority{AuthServerMeta: &oauthex.AuthServerMeta{}}); code != "" || err == nil || !strings.Contains(err.Error(), "has no code") {
		t.Errorf("%q, %v", code, err)
	}
}

// A status and the address of metadata have no control characters in errors: clients may write these to a terminal.
func TestErrorsArePrintable(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		status, body := "500 \x1b[2J\u009b", "{}"
		switch r.URL.Path {
		case "/other\u009b":
			status, body = "200 OK", `{"resource": "https://other.example"}`
		case "/none\u009b":
			status, body = "200 OK", `{"resource": "http://`+r.Host+`"}`
		}
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n\r\n%s", status, body)
	}))
	defer s.Close()
	o := Options{URL: s.URL}
	for path, want := range map[string]string{
		"/broken\u009b": "/broken%C2%9B answered 500  [2J ",
		"/other\u009b":  "/other  is about another server",
		"/none\u009b":   "/none  names no authorization server",
	} {
		_, unusable, err := o.resourceMetadata(t.Context(), s.Client(), s.URL+path)
		if err := errors.Join(unusable, err); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %q", path, err)
		}
	}
}

// The error for a server that does not speak HTTP quotes only the beginning of what it sends.
func TestErrorsAreShort(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\n%040000d\r\n\r\n", 0)
			conn.Close()
		}
	}))
	defer s.Close()
	o := Options{URL: s.URL, Transport: &http.Transport{}}
	_, _, err := o.probe(t.Context())
	_, unreadable := getJSON(t.Context(), o.Client(), s.URL, new(any))
	for _, err := range []error{err, unreadable} {
		if err == nil || !strings.Contains(err.Error(), "missing colon") || len(err.Error()) > 500 {
			t.Errorf("error %.1000v", err)
		}
	}
}
