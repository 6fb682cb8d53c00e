package httpsource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/httpsource"
	"github.com/attache-mcp/attache/policy/policytest"
)

const secret = "atk_k1_sEcReTsEcReT"

func TestSource(t *testing.T) {
	policytest.Run(t, func(t *testing.T, scopes map[string]policy.Scope) policy.Source {
		return newSource(t, httpsource.Options{URL: serve(t, endpoint(scopes)).URL + "/effective"})
	})
}

// endpoint is a small policy server, like one that a reader of the documentation would write.
func endpoint(scopes map[string]policy.Scope) http.HandlerFunc {
	type item struct {
		Name      string          `json:"name"`
		Position  policy.Position `json:"position"`
		Text      string          `json:"text"`
		Inherited bool            `json:"inherited,omitempty"`
	}
	return func(w http.ResponseWriter, r *http.Request) {
		effective, err := policy.Resolve(scopes, r.URL.Query().Get("scope"))
		switch {
		case errors.Is(err, policy.ErrUnknownScope):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			var items []item
			for _, p := range effective.Policies {
				items = append(items, item(p))
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"policies": items, "objectives": effective.Objectives})
		}
	}
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// newSource returns a source whose server has a minute to answer, because the default of 2 s can pass on a busy
// machine.
func newSource(t *testing.T, o httpsource.Options) *httpsource.Source {
	t.Helper()
	o.Timeout = time.Minute
	source, err := httpsource.New(o)
	testkit.Check(t, err)
	return source
}

// answer is a server with a constant answer.
func answer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func ask(t *testing.T, source policy.Source) (policy.Effective, error) {
	return source.Effective(t.Context(), policy.Query{Scope: "acme/platform", Workspace: "w 1", Credential: secret})
}

func TestRequest(t *testing.T) {
	tests := []struct {
		name          string
		path          string
		token         policy.Credential
		query         policy.Query
		uri           string
		authorization string
	}{
		{
			name: "the session's credential", path: "/effective", query: policy.Query{Scope: "acme/platform", Workspace: "w1", Credential: secret},
			uri: "/effective?scope=acme%2Fplatform&workspace=w1", authorization: "Bearer " + secret,
		},
		{
			name: "the configured token instead", path: "/", token: "t0ken", query: policy.Query{Scope: "a", Credential: secret},
			uri: "/?scope=a&workspace=", authorization: "Bearer t0ken",
		},
		{name: "neither", path: "/", query: policy.Query{Scope: "a"}, uri: "/?scope=a&workspace="},
		{
			name: "a URL with a query, and special characters", path: "/p?b=2&a=1%20#frag",
			query: policy.Query{Scope: "a&admin=1#?", Workspace: "ü\r\nX: y"},
			uri:   "/p?b=2&a=1%20&scope=a%26admin%3D1%23%3F&workspace=%C3%BC%0D%0AX%3A+y",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got *http.Request
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				got = r
				_, _ = io.WriteString(w, `{"objectives": ["o"]}`)
			})
			source := newSource(t, httpsource.Options{URL: server.URL + test.path, Token: test.token})
			if _, err := source.Effective(t.Context(), test.query); err != nil {
				t.Fatal(err)
			}
			if got.Method != "GET" || got.RequestURI != test.uri || got.Header.Get("Authorization") != test.authorization {
				t.Errorf("got %s %s with %q", got.Method, got.RequestURI, got.Header.Get("Authorization"))
			}
		})
	}
}

func TestAnswer(t *testing.T) {
	server := serve(t, answer(200, ` {"objectives": ["o"], "policies": [
		{"name": "n", "position": "prepend", "text": "t", "inherited": true}, {"text": "u", "position": "append", "name": "m"}]} `))
	got, err := ask(t, newSource(t, httpsource.Options{URL: server.URL}))
	want := policy.Effective{
		Policies: []policy.Policy{
			{Name: "n", Position: policy.Prepend, Text: "t", Inherited: true}, {Name: "m", Position: policy.Append, Text: "u"},
		},
		Objectives: []string{"o"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, empty := range []string{`{"policies": [], "objectives": []}`, `{"policies": null, "objectives": null}`, `{"policies": []}`, `{"objectives": null}`} {
		got, err := ask(t, newSource(t, httpsource.Options{URL: serve(t, answer(200, empty)).URL}))
		if err != nil || !got.Empty() {
			t.Errorf("%s: got %v, %v", empty, got, err)
		}
	}
}

// If the endpoint is down, the error says so, and contains nothing of the answer.
func TestDown(t *testing.T) {
	is := func(errs ...error) []error { return errs }
	down := is(policy.ErrUnavailable)
	echo := `{"policies": [{"` + secret + `": "` + secret + `"}]}`
	tests := []struct {
		name    string
		handler http.HandlerFunc
		is      []error
		says    string
	}{
		{"unauthorized", answer(401, secret), is(policy.ErrUnauthorized), "answered 401: see whether the key"},
		{"forbidden", answer(403, secret), is(policy.ErrUnauthorized), "answered 403"},
		{"not found", answer(404, secret), is(policy.ErrUnknownScope), "see whether the scope and policy.url are right"},
		{"error", answer(500, secret), down, "answered 500"},
		{"no content", answer(204, ""), down, "answered 204"},
		{"a page", answer(200, "<html>"+secret), down, "it is not a JSON object"},
		{"nothing", answer(200, ""), down, "it is not a JSON object"},
		{"not utf-8", answer(200, "{\"objectives\": [\"\xff\"]}"), down, "it is not UTF-8"},
		{"a list", answer(200, `[]`), down, "it is not a JSON object"},
		{"neither member", answer(200, `{}`), down, "neither policies nor objectives"},
		{"unknown member", answer(200, echo), down, "policy 1: it has a member that is not known"},
		{"unknown member at the top", answer(200, `{"policies": [], "error": "`+secret+`"}`), down, "it has a member that is not known"},
		{"another case", answer(200, `{"Policies": []}`), down, "it has a member that is not known"},
		{"a member twice", answer(200, `{"objectives": ["a"], "objectives": ["b"]}`), down, "or one twice"},
		{"two values", answer(200, `{"objectives": []} {}`), down, "something follows"},
		{"a stray bracket", answer(200, `{"objectives": []}}`), down, "something follows"},
		{"truncated", answer(200, `{"objectives": []`), down, "it is not JSON"},
		{"not a list", answer(200, `{"objectives": "a"}`), down, "objectives is not of the right type"},
		{"not text", answer(200, `{"objectives": [1]}`), down, "objectives is not of the right type"},
		{"empty text", answer(200, `{"objectives": ["a", " "]}`), down, "objective 2 is empty"},
		{"no name", answer(200, `{"policies": [{"position": "append", "text": "t"}]}`), down, "policy 1: it has no name or no text"},
		{"no text", answer(200, `{"policies": [{"name": "n", "position": "append", "text": " "}]}`), down, "policy 1: it has no name or no text"},
		{"bad position", answer(200, `{"policies": [{"name": "n", "position": "`+secret+`", "text": "t"}]}`), down, "policy 1: its position is neither"},
		{"no policy", answer(200, `{"policies": [null]}`), down, "policy 1: it is not a JSON object"},
		{"too much", answer(200, `{"objectives": ["`+strings.Repeat("x", 1<<20)+`"]}`), down, "more than 1 MiB"},
		{"interrupted", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"objectives": []}`)
		}, is(policy.ErrUnavailable, io.ErrUnexpectedEOF), "see whether it is up"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := serve(t, test.handler)
			got, err := ask(t, newSource(t, httpsource.Options{URL: server.URL + "/p?key=" + secret}))
			for _, is := range test.is {
				if !errors.Is(err, is) {
					t.Errorf("got %v, which is not %v", err, is)
				}
			}
			text := fmt.Sprintf("%v %+v", err, err)
			if !got.Empty() || !strings.Contains(text, test.says) || !strings.Contains(text, server.URL+"/p") {
				t.Errorf("got %v and %v, want one that says %q", got, err, test.says)
			}
			if strings.Contains(text, secret) || strings.Contains(text, "acme") {
				t.Errorf("the error contains part of the answer: %v", err)
			}
		})
	}
	t.Run("not there", func(t *testing.T) {
		server := serve(t, answer(200, ""))
		server.Close()
		_, err := ask(t, newSource(t, httpsource.Options{URL: server.URL + "/p?key=" + secret}))
		if !errors.Is(err, policy.ErrUnavailable) || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRedirects(t *testing.T) {
	var reached http.Header
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) { reached = r.Header })
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/end" {
				_, _ = io.WriteString(w, `{"objectives": ["`+r.Header.Get("Authorization")+`"]}`)
				return
			}
			http.Redirect(w, r, to, http.StatusFound)
		}
	}
	tests := []struct{ name, to, says string }{
		{"on the same host", "/end", ""},
		{"to another port", elsewhere.URL, "redirects to another host"},
		{"to another host", "https://policy.example/" + secret, "redirects to another host"},
		{"to another scheme", "", "redirects to another host"},
		{"for ever", "/p", "redirects too often"},
		{"to nowhere", "://", "see whether it is up"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			to := test.to
			server := serve(t, func(w http.ResponseWriter, r *http.Request) { redirect(to)(w, r) })
			if to == "" {
				to = strings.Replace(server.URL, "http:", "https:", 1)
			}
			got, err := ask(t, newSource(t, httpsource.Options{URL: server.URL + "/p"}))
			switch {
			case test.says == "" && (err != nil || got.Objectives[0] != "Bearer "+secret):
				t.Errorf("got %v, %v", got, err)
			case test.says != "" && (!errors.Is(err, policy.ErrUnavailable) || !strings.Contains(err.Error(), test.says)):
				t.Errorf("got %v, %v; want %q", got, err, test.says)
			case err != nil && strings.Contains(err.Error(), secret):
				t.Errorf("the error contains part of the answer: %v", err)
			case err != nil && strings.Count(err.Error(), "policy.url") != 1:
				t.Errorf("the error does not say once what to do: %v", err)
			}
		})
	}
	if reached != nil {
		t.Errorf("another host was asked, with %v", reached)
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []struct{ url, says string }{
		{"", "not an address"},
		{"policy.example/effective", "not an address"},
		{"https://", "not an address"},
		{"https://policy.example/%zz" + secret, "not an address"},
		{"http://policy.example/effective", "in clear"},
		{"http://127.0.0.1.policy.example/", "in clear"},
		{"http://10.0.0.1/", "in clear"},
		{"ftp://localhost/", "not the address of an HTTP endpoint"},
		{"file://localhost/etc/passwd", "not the address of an HTTP endpoint"},
		{"https://ada:" + secret + "@policy.example/", "user name"},
		{"https://policy.example/?scope=" + secret, "scope or workspace"},
		{"https://policy.example/?a=1&workspace", "scope or workspace"},
	}
	for _, test := range tests {
		_, err := httpsource.New(httpsource.Options{URL: test.url})
		if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("New(%s) = %v, want an error that says %q", test.url, err, test.says)
		}
	}
	for _, fine := range []string{"https://policy.example/e?a=1", "http://localhost:8080/", "http://LOCALHOST/", "http://127.0.0.1/", "http://127.8.8.8:1/", "http://[::1]:80/"} {
		if _, err := httpsource.New(httpsource.Options{URL: fine}); err != nil {
			t.Errorf("New(%s): %v", fine, err)
		}
	}
}

func TestCredentialThatIsNone(t *testing.T) {
	asked := false
	server := serve(t, func(http.ResponseWriter, *http.Request) { asked = true })
	source := newSource(t, httpsource.Options{URL: server.URL})
	for _, credential := range []policy.Credential{secret + "\r\nX: y", secret + "\n", "a b" + secret, secret + "ü", secret + "\x7f"} {
		_, err := source.Effective(t.Context(), policy.Query{Scope: "a", Credential: credential})
		if !errors.Is(err, policy.ErrUnauthorized) || strings.Contains(err.Error(), secret) || asked {
			t.Errorf("got %v (asked: %v)", err, asked)
		}
	}
}

func TestGivenClient(t *testing.T) {
	server := httptest.NewTLSServer(endpoint(map[string]policy.Scope{"acme/platform": {Objectives: []string{"o"}}}))
	defer server.Close()
	if got, err := ask(t, newSource(t, httpsource.Options{URL: server.URL, Client: server.Client()})); err != nil || len(got.Objectives) != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	// A client that does not trust the certificate gets no answer.
	if _, err := ask(t, newSource(t, httpsource.Options{URL: server.URL})); !errors.Is(err, policy.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// transport answers requests without a network, so that the test can use a fake clock.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// slowBody returns nothing until its request ends.
type slowBody struct{ ctx context.Context }

func (b slowBody) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

func (slowBody) Close() error { return nil }

func TestTimeout(t *testing.T) {
	silent := transport(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	slow := transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: slowBody{r.Context()}, Request: r}, nil
	})
	for name, via := range map[string]transport{"no answer": silent, "half an answer": slow} {
		for _, timeout := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(name, " ", timeout), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source, err := httpsource.New(httpsource.Options{URL: "https://policy.example/", Timeout: timeout, Client: &http.Client{Transport: via}})
					testkit.Check(t, err)
					start := time.Now()
					_, err = ask(t, source)
					want := timeout
					if want == 0 {
						want = httpsource.DefaultTimeout
					}
					if took := time.Since(start); took != want {
						t.Errorf("waited %v, want %v", took, want)
					}
					if !errors.Is(err, policy.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("got %v", err)
					}
				})
			})
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"policies": [{"name": "n", "position": "prepend", "text": "t", "inherited": true}], "objectives": ["o"]}`,
		`{"policies": null}`, `{}`, `[]`, `{"objectives": ["` + "\xff" + `"]}`, `{"objectives": []}}`, `{"policies": [{"name": {}}]}`, ``, `{"policies`,
		`{"objectives": ["\ud800", "\u0000"]}`, strings.Repeat(`{"policies":`, 100), `{"policies": [` + strings.Repeat(`[`, 1000),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		source := newSource(t, httpsource.Options{
			URL: "https://policy.example/",
			Client: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, nil
			})},
		})
		got, err := source.Effective(t.Context(), policy.Query{Scope: "a"})
		if err != nil {
			if !errors.Is(err, policy.ErrUnavailable) || !got.Empty() {
				t.Errorf("%q: got %v beside %v", body, got, err)
			}
			return
		}
		if !json.Valid(body) {
			t.Errorf("%q was accepted, but is not JSON", body)
		}
		for _, p := range got.Policies {
			if p.Name == "" || p.Text == "" || !p.Position.Valid() {
				t.Errorf("%q was accepted with %+v", body, p)
			}
		}
	})
}

func ExampleNew() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"objectives": ["Serve %s well"]}`, r.URL.Query().Get("scope"))
	}))
	defer server.Close()

	source, err := httpsource.New(httpsource.Options{URL: server.URL + "/effective"})
	if err != nil {
		fmt.Println(err)
		return
	}
	effective, err := source.Effective(context.Background(), policy.Query{Scope: "acme", Credential: "atk_k1_..."})
	fmt.Println(effective.Objectives, err)

	_, err = httpsource.New(httpsource.Options{URL: (&url.URL{Scheme: "http", Host: "policy.example"}).String()})
	fmt.Println(err)
	// Output:
	// [Serve acme well] <nil>
	// policy.url would send the credential in clear: use https, or http to localhost
}
