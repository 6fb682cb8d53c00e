// Package wake notifies a session that makes no calls of waiting messages, through the inbox that its
// client offers to its servers, or with a command of the operator.
package wake

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/glob"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/proxy/child"
)

// The variables in which Claude Code passes the socket of its inbox, and the credential for it.
const (
	socketVariable = "CLAUDE_CODE_MESSAGING_SOCKET"
	tokenVariable  = "CLAUDE_CODE_MESSAGING_TOKEN"
)

// The timeouts of the inbox and of a command.
const (
	inboxTime   = 5 * time.Second
	commandTime = 30 * time.Second
)

// For returns the function that wakes a session, from the first entry of teams.wake that applies to
// it, or nil.
func For(p cli.Process, s *config.Settings) func(teams.Host) teams.Wake {
	return func(h teams.Host) teams.Wake {
		for _, w := range s.Teams.Wake {
			if wake := waker(p, s, w, h); wake != nil {
				return wake
			}
		}
		return nil
	}
}

func waker(p cli.Process, s *config.Settings, w config.Waker, h teams.Host) teams.Wake {
	if w.Command == nil {
		return inbox(p, h)
	}
	matches, err := glob.Match([]string{w.Client}, h.Client)
	if err != nil || !matches || !setting.IsArgument(h.Session) && slices.Contains(w.Command, config.HostPlaceholder) {
		return nil
	}
	env := assembly.Without(p.Env, assembly.OwnVariables(s)...)
	return func(ctx context.Context, notice string) error {
		return run(ctx, child.Options{Env: env, Argv: setting.Fill(w.Command, map[string]string{
			config.NoticePlaceholder: notice, config.HostPlaceholder: h.Session, config.WorkspacePlaceholder: h.Workspace,
		})})
	}
}

func run(ctx context.Context, o child.Options) error {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	command, err := child.Start(ctx, o)
	if err != nil {
		return err
	}
	command.CloseStdin()
	_, _ = io.Copy(io.Discard, command.Stdout())
	if exit := command.Wait(); exit.Status() != 0 {
		return errors.New(exit.String() + child.LastWords(command.Tail()))
	}
	return nil
}

// inboxClient is the clientInfo.name of the client that has an inbox.
const inboxClient = "claude-code"

// inbox returns a function that puts a notice into the inbox of the session that started this process,
// or nil if the session has no inbox. A shell of Claude Code has the variables, too: they are not those of
// another client that is started there.
func inbox(p cli.Process, h teams.Host) teams.Wake {
	socket, token := p.Getenv(socketVariable), p.Getenv(tokenVariable)
	client := toolresult.ClientOf(h.Client).Name
	if socket == "" || token == "" || client != "" && client != inboxClient {
		return nil
	}
	return func(ctx context.Context, notice string) error { return put(ctx, socket, token, notice) }
}

// put writes two lines to the socket: the credential, and the message.
func put(ctx context.Context, socket, token, notice string) error {
	ctx, cancel := context.WithTimeout(ctx, inboxTime)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(inboxTime))
	lines := json.NewEncoder(c)
	if err := lines.Encode(map[string]any{"type": "auth", "token": token}); err != nil {
		return err
	}
	return lines.Encode(map[string]any{
		"type": "user", "priority": "later",
		"message": map[string]string{"role": "user", "content": notice},
	})
}
