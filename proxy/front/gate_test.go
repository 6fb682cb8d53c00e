package front

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/front/sessions"
	"github.com/attache-mcp/attache/proxy/mempipe"
)

// While credentials cannot be checked, the front warns once a minute, not for each request.
func TestUnavailableWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := New(Options{
			Log:          slog.New(slog.NewTextHandler(&out, nil)),
			Authenticate: func(context.Context, string) (Principal, error) { return Principal{}, ErrUnavailable },
		})
		for range 2 {
			for range 3 {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader("{}"))
				r.Header.Set("Authorization", "Bearer key")
				w := httptest.NewRecorder()
				if f.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
					t.Errorf("status %d, want 503", w.Code)
				}
			}
			time.Sleep(time.Minute)
		}
		if warnings, all := strings.Count(out.String(), "level=WARN"), strings.Count(out.String(), "a request was refused"); warnings != 2 || all != 6 {
			t.Errorf("%d warnings and %d lines for 6 requests in two minutes, want 2 and 6:\n%s", warnings, all, &out)
		}
	})
}

// If AuthenticateRequest lets everybody in, a credential that nobody has checked does not reach the layers.
func TestUncheckedCredential(t *testing.T) {
	for id, want := range map[string]string{"": "", "key a": "atk_a"} {
		opened := make(chan Opening, 1)
		f := New(Options{
			AuthenticateRequest: func(*http.Request) (Principal, error) { return Principal{ID: id}, nil },
			Open:                func(o Opening) (Relay, error) { opened <- o; return Relay{}, ErrBusy },
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`))
		r.Header = http.Header{"Authorization": {"Bearer atk_a"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		f.ServeHTTP(httptest.NewRecorder(), r)
		if o := <-opened; o.Credential != want {
			t.Errorf("the session of %q has the credential %q, want %q", id, o.Credential, want)
		}
	}
}

// An operator reads in the log which name or origin is missing in the configuration.
func TestRefusedAddressIsLogged(t *testing.T) {
	var out bytes.Buffer
	f := New(Options{Log: slog.New(slog.NewTextHandler(&out, nil)), Hosts: []string{"mcp.example"}})
	for host, from := range map[string]string{"other.example": "", "mcp.example": "https://page.example"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/mcp", strings.NewReader("{}"))
		if from != "" {
			r.Header.Set("Origin", from)
		}
		w := httptest.NewRecorder()
		if f.ServeHTTP(w, r); w.Code != http.StatusForbidden {
			t.Errorf("%s: status %d, want 403", host, w.Code)
		}
	}
	for _, want := range []string{`the host \"other.example\" is not in serve.hosts`, `the origin \"https://page.example\" is not in serve.origins`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log does not have %s:\n%s", want, &out)
		}
	}
}

// A downStore is a Store whose database does not answer.
type downStore struct{ sessions.Store }

// Take implements sessions.Store.
func (downStore) Take(ctx context.Context, _ sessions.Key) (sessions.Session, error) {
	return sessions.Session{}, cmp.Or(ctx.Err(), errors.New("the database is not available"))
}

// While sessions cannot be taken from the Store, the front logs an error once a minute, not for each
// request, and none for a client that has disconnected.
func TestUnavailableStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		f := New(Options{Log: slog.New(slog.NewTextHandler(&out, nil)), Store: downStore{}})
		request := func(ctx context.Context) {
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			r.Header.Set("Mcp-Session-Id", sessions.NewID())
			w := httptest.NewRecorder()
			if f.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable || w.Header().Get("Attache-Executed") != "nothing" {
				t.Errorf("status %d, Attache-Executed %q, want 503, nothing", w.Code, w.Header().Get("Attache-Executed"))
			}
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		request(left)
		for range 30 {
			request(t.Context())
		}
		if failures, all := strings.Count(out.String(), "level=ERROR"), strings.Count(out.String(), "\n"); failures != 1 || all != 20 {
			t.Errorf("%d errors and %d lines for 30 requests, want 1 and 20:\n%s", failures, all, &out)
		}
	})
}

// If the client disconnects while its credential is checked, no refusal is logged.
func TestDisconnectIsNotRefusal(t *testing.T) {
	var out bytes.Buffer
	canceled, cancel := context.WithCancel(t.Context())
	f := New(Options{
		Log: slog.New(slog.NewTextHandler(&out, nil)),
		Authenticate: func(context.Context, string) (Principal, error) {
			cancel()
			return Principal{}, ErrUnavailable
		},
	})
	for _, ctx := range []context.Context{canceled, t.Context()} {
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer key")
		f.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || !strings.Contains(out.String(), "level=WARN") {
		t.Errorf("%d lines, want only the warning for the second request:\n%s", n, &out)
	}
}

// A stream ends when its credential is refused, but not while credentials cannot be checked. Its session
// ends only if the credential was revoked: after another refusal, the user may come back with a new token.
func TestStreamEndsWithItsCredential(t *testing.T) {
	t.Run("refused", func(t *testing.T) { testStreamEnds(t, errors.New("the token has expired"), 2) })
	t.Run("revoked", func(t *testing.T) { testStreamEnds(t, fmt.Errorf("%w: the key was revoked", ErrEnded), 0) })
	t.Run("another's", func(t *testing.T) { testStreamEnds(t, nil, 2) })
}

// testStreamEnds checks that two streams end when their credential is refused with the error refusal, or is
// that of another principal if refusal is nil, and how many of their sessions are left.
func testStreamEnds(t *testing.T, refusal error, left int) {
	synctest.Test(t, func(t *testing.T) {
		answers := []error{nil, ErrUnavailable, refusal}
		var now atomic.Int32
		f := New(Options{
			Reauthenticate: time.Second,
			Authenticate: func(context.Context, string) (Principal, error) {
				n := now.Load()
				return Principal{ID: []string{"ada", "ada", "bob"}[n]}, answers[n]
			},
			Open: func(Opening) (Relay, error) {
				return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
					return mempipe.Serve(func(in io.Reader, _ io.Writer) error {
						_, err := io.Copy(io.Discard, in)
						return err
					}), nil
				}}}, nil
			},
		})
		defer f.Drain(t.Context())
		s, err := f.create("", Principal{ID: "ada"}, "key")
		check(t, err)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		get := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/mcp", http.NoBody)
		get.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {s.id}}
		listen := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`))
		listen.Header = http.Header{
			"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
		}
		ended := make(chan string, 2)
		for _, r := range []*http.Request{get, listen} {
			go func() {
				r.Header.Set("Authorization", "Bearer key")
				w := httptest.NewRecorder()
				f.ServeHTTP(w, r)
				ended <- fmt.Sprint(r.Method, " ", w.Code)
			}()
		}
		for i, answer := range answers[:2] {
			now.Store(int32(i))
			time.Sleep(10 * time.Second)
			if len(ended) > 0 {
				t.Fatalf("%s has ended while the check of its credential says %v", <-ended, answer)
			}
		}
		now.Store(2)
		time.Sleep(2 * time.Second)
		if len(ended) < 2 {
			t.Errorf("%d of 2 streams have ended after their credential was revoked", len(ended))
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if n := len(f.sessionsLocked()); n != left {
			t.Errorf("%d sessions are left, want %d", n, left)
		}
	})
}

type userKey struct{}

// A request without a credential is not logged, because each login begins with one. One that is refused is.
func TestOnlyRefusedCredentialsAreLogged(t *testing.T) {
	for _, test := range []struct {
		header, value string
		want          bool
	}{
		{"Authorization", "", false},
		{"Authorization", "Bearer atk_a", true},
		{"Cookie", "session=a", true},
	} {
		var out bytes.Buffer
		f := New(Options{
			Log: slog.New(slog.NewTextHandler(&out, nil)),
			AuthenticateRequest: func(r *http.Request) (Principal, error) {
				if r.Header.Get("Authorization")+r.Header.Get("Cookie") == "" {
					return Principal{}, ErrNoCredential
				}
				return Principal{}, errors.New("nobody")
			},
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader("{}"))
		r.Header = http.Header{test.header: {test.value}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if logged := strings.Contains(out.String(), "refused"); w.Code != http.StatusUnauthorized || logged != test.want {
			t.Errorf("%s %q: status %d, logged %t, want 401 and %t\n%s", test.header, test.value, w.Code, logged, test.want, &out)
		}
	}
}

// With AuthenticateRequest, requests need no header Authorization, and a stream ends when its user is
// refused.
func TestAuthenticateRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocked atomic.Bool
		var asked atomic.Int32
		f := New(Options{
			Reauthenticate: time.Second,
			AuthenticateRequest: func(r *http.Request) (Principal, error) {
				asked.Add(1)
				user, _ := r.Context().Value(userKey{}).(string)
				if user == "" || blocked.Load() {
					return Principal{}, errors.New("nobody")
				}
				return Principal{ID: user}, nil
			},
			Open: func(o Opening) (Relay, error) {
				if o.Who.ID != "ada" {
					t.Errorf("opened for %q", o.Who.ID)
				}
				return Relay{Options: proxy.Options{Start: func(context.Context) (proxy.Upstream, error) {
					return mempipe.Serve(func(in io.Reader, _ io.Writer) error {
						_, err := io.Copy(io.Discard, in)
						return err
					}), nil
				}}}, nil
			},
		})
		defer f.Drain(t.Context())
		s, err := f.create("", Principal{ID: "ada"}, "")
		check(t, err)
		client, leave := context.WithCancel(t.Context())
		get := func(user string) *httptest.ResponseRecorder {
			ctx := context.WithValue(client, userKey{}, user)
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1/mcp", http.NoBody)
			r.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {s.id}}
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r)
			return w
		}
		if w := get(""); w.Code != http.StatusUnauthorized {
			t.Errorf("nobody: status %d, want 401", w.Code)
		} else if got := w.Header().Get("WWW-Authenticate"); got != "Bearer" {
			t.Errorf("nobody: challenge %s, want no error, because there was no token", got) // RFC 6750, section 3.1
		}
		if w := get("bob"); w.Code != http.StatusNotFound {
			t.Errorf("another user: status %d, want 404", w.Code)
		}
		ended := make(chan int)
		go func() { ended <- get("ada").Code }()
		time.Sleep(time.Minute)
		synctest.Wait() // the check of this second has ended
		select {
		case <-ended:
			t.Fatal("the stream has ended")
		default:
		}
		leave()
		<-ended
		before := asked.Load()
		time.Sleep(time.Minute)
		if n := asked.Load(); n != before {
			t.Errorf("the credential of a stream that has ended was checked %d times", n-before)
		}
		client = t.Context()
		go func() { ended <- get("ada").Code }()
		synctest.Wait()
		blocked.Store(true)
		if code := <-ended; code != http.StatusOK {
			t.Errorf("the stream: status %d, want 200", code)
		}
	})
}

var check = testkit.Check
