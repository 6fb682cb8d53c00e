//go:build unix

package wake

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/middleware/teams"
)

// The two lines that attache writes to Claude Code's inbox. Without a configuration it writes none.
func TestInbox(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "inbox")
	listener, err := net.Listen("unix", socket)
	testkit.Check(t, err)
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
	testkit.Check(t, For(p, s)(teams.Host{})(t.Context(), "2 messages wait"))
	want := `{"token":"secret","type":"auth"}` + "\n" + `{"message":{"content":"2 messages wait","role":"user"},"priority":"later","type":"user"}` + "\n"
	if text := <-got; text != want {
		t.Errorf("got %q", text)
	}
	if For(p, s)(teams.Host{Client: "claude-code"}) == nil {
		t.Error("Claude Code has no inbox")
	}
	if For(p, s)(teams.Host{Client: "copilot-cli"}) != nil {
		t.Error("Copilot CLI in a shell of Claude Code has the inbox of Claude Code")
	}
	if For(cli.Process{}, s)(teams.Host{}) != nil {
		t.Error("there is an inbox without its variables")
	}
	if s.Teams.Wake = nil; For(p, s)(teams.Host{}) != nil {
		t.Error("there is an inbox that the operator does not want")
	}
}

// A command runs only for the sessions of its client, with each value in its own argument and without
// attache's secrets.
func TestCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "said")
	s := config.DefaultSettings("")
	p := cli.Process{Env: []string{"PATH=" + os.Getenv("PATH"), "ATTACHE_API_KEY=atk_secret", "FILE=" + file}}
	say := func(client string, more ...string) config.Waker {
		return config.Waker{Client: client, Command: append([]string{"sh", "-c", `cat >&2; printf '%s\n' "$@" "key=$ATTACHE_API_KEY" > "$FILE"`, "sh"}, more...)}
	}
	s.Teams.Wake = []config.Waker{
		say("other", "not this"), say("codex*", "{host_session}", "{notice}"), say("codex*", "{notice}", "{workspace}"),
		{Client: "fails", Command: []string{"sh", "-c", "echo no such thread >&2; exit 3"}},
	}
	for _, test := range []struct {
		host teams.Host
		want string
	}{
		{teams.Host{Client: "codex-mcp-client", Session: "a; b", Workspace: "/w"}, "a; b\n2 messages wait\nkey=\n"},
		{teams.Host{Client: "codex-mcp-client", Workspace: "/w 1"}, "2 messages wait\n/w 1\nkey=\n"},
		{teams.Host{Client: "codex-mcp-client", Session: "--yolo", Workspace: "/w"}, "2 messages wait\n/w\nkey=\n"},
		{teams.Host{Client: "codex-mcp-client", Session: "a\nb", Workspace: "/w"}, "2 messages wait\n/w\nkey=\n"},
	} {
		testkit.Check(t, For(p, s)(test.host)(t.Context(), "2 messages wait"))
		if got, _ := os.ReadFile(file); string(got) != test.want {
			t.Errorf("%+v: got %q, want %q", test.host, got, test.want)
		}
	}
	if For(p, s)(teams.Host{Client: "claude-code"}) != nil {
		t.Error("there is a command for a client that none is for")
	}
	err := For(p, s)(teams.Host{Client: "fails"})(t.Context(), "2 messages wait")
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such thread") {
		t.Errorf("got %v", err)
	}
}
