package serve

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Each limit of the configuration refuses the message or session that exceeds it.
func TestLimits(t *testing.T) {
	large := strings.Replace(initialize, `"params":{`, `"params":{"_meta":{"x":"`+strings.Repeat("x", 10_000)+`"},`, 1)
	for limit, test := range map[string]struct {
		then   string
		status int
	}{
		"body: 1KiB":  {large, http.StatusRequestEntityTooLarge},
		"sessions: 1": {initialize, http.StatusServiceUnavailable},
		"children: 1": {initialize, http.StatusServiceUnavailable},
	} {
		t.Run(limit, func(t *testing.T) {
			r := start(t, "serve: {limits: {"+limit+"}}\n")
			first, body := r.post(t, http.DefaultClient, initialize)
			if first.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", first.StatusCode, body)
			}
			if resp, body := r.post(t, http.DefaultClient, test.then); resp.StatusCode != test.status {
				t.Errorf("%d %s, want %d", resp.StatusCode, body, test.status)
			}
			// A session that has ended makes room for another one.
			q, err := http.NewRequest(http.MethodDelete, r.url, nil)
			check(t, err)
			q.Header.Set("Mcp-Session-Id", first.Header.Get("Mcp-Session-Id"))
			resp, err := http.DefaultClient.Do(q)
			check(t, err)
			resp.Body.Close()
			for end := time.Now().Add(time.Minute); ; {
				resp, body := r.post(t, http.DefaultClient, initialize)
				if resp.StatusCode == http.StatusOK {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("after the end of the session: %d %s", resp.StatusCode, body)
				}
			}
		})
	}
}
