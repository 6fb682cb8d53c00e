package assembly

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/proxy/proxytest"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// The record of a call that was cancelled names its caller, even if the call had to wait for the
// look-up of its key. So does that of a call without a reply.
func TestRecordWithoutReplyNamesCaller(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	key, _ := attachetest.CreateKey(t, filepath.Join(dir, "keys.yaml"), identity.Attributes{User: "ada", Tenant: "acme"})
	for result, cancel := range map[string]bool{"cancelled": true, "none": false} {
		p := attachetest.WriteConfig(t, "audit: {file: "+path+"}\nidentity: {keys_file: "+filepath.Join(dir, "keys.yaml")+"}\n", "ATTACHE_API_KEY="+key)
		shared, err := Compile(Options{Process: p, Audit: true, Log: slog.New(slog.DiscardHandler)}, attachetest.Load(t, p))
		check(t, err)
		conn := shared.Connect(ConnOptions{})
		s := proxytest.Setup{Options: conn.Relay()}.Start(t)
		s.Client.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + result + `"}}`)
		s.Server.Next()
		if cancel {
			s.Client.Send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			s.Server.Next()
		}
		conn.Close()
		s.Exit(nil)
		s.Client.Close()
		<-s.Over()
		shared.Close()
		records, err := os.ReadFile(path)
		check(t, err)
		found := false
		for line := range bytes.Lines(records) {
			if v := (wire.Value{Raw: line}); v.Get("tool").Equals(result) {
				found = v.Get("result").Equals(result) && v.Get("user").Equals("ada") && v.Get("tenant").Equals("acme")
			}
		}
		if !found {
			t.Errorf("no record of a call with the result %s names its caller: %s", result, records)
		}
	}
}
