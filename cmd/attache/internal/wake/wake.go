// Package wake draws the attention of a session that makes no calls, by the inbox that its
// client gives the servers that it starts (T31).
package wake

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// The variables by which Claude Code names its inbox, and the credential for it.
const (
	socketVariable = "CLAUDE_CODE_MESSAGING_SOCKET"
	tokenVariable  = "CLAUDE_CODE_MESSAGING_TOKEN"
)

// limit bounds how long the inbox may take.
const limit = 5 * time.Second

// Inbox returns what puts a notice into the inbox of the session that started this process,
// nil if it has none or the operator does not want it.
func Inbox(p cli.Process, s *config.Settings) func(ctx context.Context, notice string) error {
	socket, token := p.Getenv(socketVariable), p.Getenv(tokenVariable)
	if socket == "" || token == "" || !slices.Contains(s.Teams.Wake, config.ClaudeInbox) {
		return nil
	}
	return func(ctx context.Context, notice string) error { return put(ctx, socket, token, notice) }
}

// put writes two lines: who writes, and what.
func put(ctx context.Context, socket, token, notice string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(limit))
	lines := json.NewEncoder(c)
	if err := lines.Encode(map[string]any{"type": "auth", "token": token}); err != nil {
		return err
	}
	return lines.Encode(map[string]any{
		"type": "user", "priority": "later",
		"message": map[string]string{"role": "user", "content": notice},
	})
}
