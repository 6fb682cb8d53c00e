package assembly

import (
	"bytes"
	"cmp"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// The record of a frame that bypasses the rules names the client of the front that sent it, even if
// it is the client's first frame. If the client is unknown, the record has no level of trust.
func TestAsideRecordOfClient(t *testing.T) {
	ada := &sessionstate.Principal{User: "ada", Trust: "sandboxed"}
	for credential, want := range map[string]string{"key": "ada sandboxed", "": " "} {
		record := recordAside(t, &Client{Latest: func() (string, *sessionstate.Principal) { return credential, ada }})
		if got := record.Get("user").Text() + " " + record.Get("trust").Text(); got != want {
			t.Errorf("%q: the record names %q, want %q: %s", credential, got, want, record.Raw)
		}
	}
}

// The principal of a message is the owner of its own credential, even if a later request of the
// session has another.
func TestMessageIsJudgedByItsSender(t *testing.T) {
	latest := &sessionstate.Principal{User: "ada", Permissions: []string{"read", "write"}}
	p := &process{}
	p.who.Store(&Authenticator{})
	known := p.knownClient(&Client{Latest: func() (string, *sessionstate.Principal) { return "token", latest }})
	for _, sender := range []*sessionstate.Principal{{User: "ada", Permissions: []string{"read"}}, latest, nil} {
		m := wire.NewRequest(wire.Client, []byte("1"), "tools/call", []byte("{}"))
		m.Beside = sender
		want := cmp.Or(sender, latest)
		if got, err, ok := known(m); !ok || err != nil || !got.Same(want) {
			t.Errorf("%v: got %v, %v, %v, want %v", sender, got, err, ok, want)
		}
	}
}

// recordAside sends a frame that bypasses the rules, and returns its record.
func recordAside(t *testing.T, client *Client) wire.Value {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	p := attachetest.WriteConfig(t, "audit: {file: "+path+"}\narguments: [{tools: [\"*\"], argument: user, value: principal.user, mode: pin}]\n")
	settings := attachetest.Load(t, p)
	shared, err := Compile(Options{Process: p, Audit: true, Log: slog.New(slog.DiscardHandler)}, settings)
	check(t, err)
	conn := shared.Connect(ConnOptions{Client: client})
	s := proxytest.Setup{Options: conn.Relay()}.Start(t)
	s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`)
	s.Client.Next()
	s.Client.Close()
	check(t, s.Wait())
	conn.Close()
	shared.Close()
	records, err := os.ReadFile(path)
	check(t, err)
	for line := range bytes.Lines(records) {
		if v := (wire.Value{Raw: line}); v.Get("kind").Text() == "aside" {
			return v
		}
	}
	t.Fatalf("no frame was recorded: %s", records)
	return wire.Value{}
}
