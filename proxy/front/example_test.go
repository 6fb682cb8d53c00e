package front_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/wire"
)

type userKey struct{}

// login is the program's own authentication, in front of all its pages.
func login(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _, _ := r.BasicAuth()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// This program serves MCP and its own pages. Its own login identifies users, and each session has its
// own server. Here the servers run in memory; package child starts processes, and package remote
// connects to a server at a URL.
func Example() {
	mcp := front.New(front.Options{
		AuthenticateRequest: func(r *http.Request) (front.Principal, error) {
			user, _ := r.Context().Value(userKey{}).(string)
			if user == "" {
				return front.Principal{}, errors.New("nobody is logged in")
			}
			return front.Principal{ID: user}, nil
		},
		Open: func(o front.Opening) (front.Relay, error) {
			return front.Relay{Options: proxy.Options{
				Start:  func(context.Context) (proxy.Upstream, error) { return mempipe.Serve(serve), nil },
				Layers: []middleware.Layer{{Name: "greet", Wrap: greet(o.Who.ID)}},
			}}, nil
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp)
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	server := httptest.NewServer(login(mux))

	session := post(server.URL, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"example","version":"1"}}}`)
	post(server.URL, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hello"}}`)

	// To stop, drain the front first: it ends the sessions when their calls have been answered.
	// The server can close connections after that.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	mcp.Drain(ctx)
	server.Config.Shutdown(ctx)

	// Output:
	// 200 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"memory","version":"1"}}}
	// 200 {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"hello ada"}],"resultType":"complete"}}
}

// greet returns a middleware that answers the tool hello for a user.
func greet(user string) middleware.Middleware {
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, m *wire.Message) error {
			if m.From != wire.Client || !m.MethodIs("tools/call") || !m.Name().Equals("hello") {
				return next(ctx, m)
			}
			text := wire.Quote("hello " + user)
			result := fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"resultType":"complete"}`, text)
			return middleware.CallFrom(ctx).Answer(ctx, wire.ResultReply(m.ID(), result))
		}
	}
}

// serve answers initialize until its input ends.
func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		m := wire.NewMessage(wire.Client, lines.Bytes())
		if m.MethodIs("initialize") {
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"memory","version":"1"}}}`+"\n", m.ID())
		}
	}
	return lines.Err()
}

// post sends a message as ada, prints the answer, and returns the id of the session.
func post(url, session, message string) string {
	r, err := http.NewRequest(http.MethodPost, url+"/mcp", strings.NewReader(message))
	check(err)
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	r.SetBasicAuth("ada", "secret")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	response, err := http.DefaultClient.Do(r)
	check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check(err)
	fmt.Println(response.StatusCode, string(body))
	return response.Header.Get("Mcp-Session-Id")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
