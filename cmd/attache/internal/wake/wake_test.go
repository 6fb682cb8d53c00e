//go:build unix

package wake

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// The two lines that Claude Code's inbox takes (T31); nothing is put there unasked.
func TestInbox(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "inbox")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got := make(chan string, 1)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		all, _ := io.ReadAll(c)
		got <- string(all)
	}()
	s := config.DefaultSettings("")
	p := cli.Process{Env: []string{socketVariable + "=" + socket, tokenVariable + "=secret"}}
	if err := Inbox(p, s)(t.Context(), "2 messages wait"); err != nil {
		t.Fatal(err)
	}
	want := `{"token":"secret","type":"auth"}` + "\n" + `{"message":{"content":"2 messages wait","role":"user"},"priority":"later","type":"user"}` + "\n"
	if text := <-got; text != want {
		t.Errorf("got %q", text)
	}
	if Inbox(cli.Process{}, s) != nil {
		t.Error("there is an inbox without its variables")
	}
	if s.Teams.Wake = nil; Inbox(p, s) != nil {
		t.Error("there is an inbox that the operator does not want")
	}
}
