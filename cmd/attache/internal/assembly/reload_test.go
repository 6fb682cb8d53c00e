package assembly

import (
	"bytes"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
)

// After a reload that fails, the log still hides the secrets of the settings in force.
func TestFailedReloadKeepsSecrets(t *testing.T) {
	p := attachetest.WriteConfig(t, "policy: {url: 'http://127.0.0.1:1/', token_env: FIRST}\n", "FIRST=abracadabra")
	settings := attachetest.Load(t, p)
	var out bytes.Buffer
	log := logging.New(p, settings, &out)
	s, err := Compile(Options{Process: p, Log: log}, settings)
	check(t, err)
	defer s.Close()
	next := *settings
	next.Policy.TokenEnv = "SECOND"
	if _, err := s.Reload(&next); err == nil {
		t.Fatal("a variable that is not set was accepted")
	}
	log.Warn("the endpoint refuses abracadabra")
	if got := out.String(); strings.Contains(got, "abracadabra") {
		t.Error(got)
	}
}

// A reload waits until it applies to all connections, and logs nothing if it does.
func TestReloadApplies(t *testing.T) {
	p := attachetest.WriteConfig(t, "access: {default: deny}\n")
	settings := attachetest.Load(t, p)
	var out bytes.Buffer
	s, err := Compile(Options{Process: p, Log: logging.New(p, settings, &out)}, settings)
	check(t, err)
	defer s.Close()
	conn := s.Connect(ConnOptions{})
	next := *settings
	next.Access.Default = "allow"
	after, err := s.Reload(&next)
	if err != nil || conn.Shared() != after || out.Len() > 0 {
		t.Errorf("%v, applied: %t, log: %s", err, conn.Shared() == after, out.String())
	}
	conn.Close()
	if len(after.connections()) > 0 {
		t.Error("a connection that was closed is kept")
	}
}
