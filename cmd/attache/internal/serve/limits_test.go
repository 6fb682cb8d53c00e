package serve

import (
	"net/http"
	"strings"
	"testing"
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
			if resp, body := r.post(t, http.DefaultClient, initialize); resp.StatusCode != http.StatusOK {
				t.Fatalf("%d %s", resp.StatusCode, body)
			}
			if resp, body := r.post(t, http.DefaultClient, test.then); resp.StatusCode != test.status {
				t.Errorf("%d %s, want %d", resp.StatusCode, body, test.status)
			}
		})
	}
}
