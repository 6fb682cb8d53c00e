package login

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"
)

// A call whose client has cancelled it does not fail the calls that wait for the same renewal.
func TestCancelledRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		o := Options{URL: "http://127.0.0.1/mcp", Machine: true, ClientID: "machine", ClientSecret: func() (string, error) { return "s", nil }}
		o.Transport = &http.Transport{Proxy: func(r *http.Request) (*url.URL, error) { // before each request
			if tries++; tries == 1 {
				<-r.Context().Done()
			}
			return nil, errors.New("no answer")
		}}
		c := NewCredentials(o, slog.New(slog.DiscardHandler))
		c.grant = &Grant{URL: o.URL, Token: o.URL + "/token", Style: oauth2.AuthStyleInParams, Expires: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error)
		go func() { _ = c.Set(ctx, http.Header{}) }()
		synctest.Wait()
		go func() { results <- c.Set(t.Context(), http.Header{}) }()
		time.Sleep(time.Second)
		cancel()
		if err := <-results; err == nil || !strings.Contains(err.Error(), "no answer") || tries != 2 {
			t.Errorf("after %d tries: error %v", tries, err)
		}
	})
}
