package front

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
