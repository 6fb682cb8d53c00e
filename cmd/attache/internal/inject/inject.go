// Package inject determines the context of a session, and how to inject it into the servers of a
// configuration, for programs that start servers themselves.
package inject

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"unicode"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientfile"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// Context returns the facts of the session, by the same rules as for a server that attache wraps. It
// returns an error if facts are invalid, because they decide which servers are left out.
func Context(ctx context.Context, p cli.Process, s *config.Settings) (*sessionstate.Context, error) {
	who, err := assembly.NewAuthenticator(p, s)
	if err != nil {
		return nil, err
	}
	principal, err := who.Identify(ctx, capture.Credential{})
	if err != nil {
		return nil, cli.Usagef("cannot determine who the session acts for: %v", err)
	}
	c := assembly.BaseContext(p, s).WithPrincipal(principal)
	checks := []struct {
		path  string
		check func(string) error
	}{
		{"session.id", config.CheckSessionKey},
		{"session.workspace.id", func(id string) error {
			if id == "" {
				return nil // there is no workspace
			}
			return config.CheckSlug(id)
		}},
		{"principal.user", userName},
	}
	for _, one := range checks {
		fact, _ := c.Lookup(one.path)
		if err := one.check(fact.Value); err != nil {
			if fact.Value == "" {
				return nil, cli.Usagef("there is no session id: give one with --session")
			}
			return nil, cli.Usagef("%s: %v", fact.From, err)
		}
	}
	return c, nil
}

// userName returns an error if s cannot be a user. It accepts addresses and account ids in any script, and
// no line breaks.
func userName(s string) error {
	if len(s) > 256 || strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("%q is not a user: write at most 256 printable characters", cli.Elided(s))
	}
	return nil
}

// Plan returns the changes to a configuration for the session.
func Plan(session *sessionstate.Context, s *config.Settings) clientconfig.Injection {
	in := clientconfig.Injection{}
	for _, entry := range sessionstate.Environment(session, s.Session.EnvPrefixes, nil) {
		name, value, _ := strings.Cut(entry, "=")
		in.Variables = append(in.Variables, clientconfig.Variable{Name: name, Value: value})
	}
	trust, _ := session.Lookup("session.trust")
	id, _ := session.Lookup("session.workspace.id")
	workspace := s.Inject.Workspaces[id.Value]
	in.Overrides = workspace.Env
	in.LeaveOut = func(name string) string {
		switch {
		case s.Inject.Servers[name].Trust == sessionstate.Direct && trust.Value != sessionstate.Direct:
			return "it is for direct sessions, and this one is " + trust.Value
		case workspace.Servers != nil && !slices.Contains(workspace.Servers, name):
			return "the workspace " + id.Value + " does not have it"
		}
		return ""
	}
	return in
}

// maxLogged is the maximum number of servers, and of variables, that are logged individually.
const maxLogged = 20

// Log logs the changes, and probable mistakes.
func Log(log *slog.Logger, done clientconfig.InjectResult, session *sessionstate.Context, s *config.Settings) {
	id, _ := session.Lookup("session.id")
	trust, _ := session.Lookup("session.trust")
	log.Info("session context injected", "session", id.Value, "trust", trust.Value, "servers", len(done.Servers)-len(done.LeftOut), "left_out", len(done.LeftOut))
	for i, l := range done.LeftOut {
		if i == maxLogged {
			log.Info("more servers left out", "count", len(done.LeftOut)-i)
			break
		}
		log.Info("server left out", "server", l.Server, "why", l.Why)
	}
	for i, k := range done.Kept {
		if i == maxLogged {
			log.Warn("more variables not overwritten", "count", len(done.Kept)-i)
			break
		}
		log.Warn("variable not overwritten: the server's entry sets it", "server", k.Server, "variable", k.Variable)
	}
	for name := range s.Inject.Servers {
		if near := cli.Nearest(name, done.Servers); near != "" && !slices.Contains(done.Servers, name) {
			log.Warn("inject.servers names a server that is not here: did you mean this one?", "name", name, "near", near)
		}
	}
}

// Read reads the file in args, or stdin. It returns the content, and the name for messages.
func Read(p cli.Process, args []string) (data []byte, name string, err error) {
	if len(args) == 0 || args[0] == "-" {
		name = "stdin"
		if term.IsTerminal(p.Stdin) {
			fmt.Fprintln(p.Stderr, "attache: reading the configuration from the terminal: give a FILE instead, or end it with an end of file")
		}
		data, err = io.ReadAll(io.LimitReader(p.Stdin, clientfile.MaxFile+1))
		if err == nil && len(data) > clientfile.MaxFile {
			err = textfile.ErrTooLarge
		}
	} else if args[0] == "" {
		return nil, "", cli.Usagef("the file's name is empty: was it a variable that is not set?")
	} else {
		name = cli.Printable(args[0])
		data, err = cli.ReadAtMost(args[0], clientfile.MaxFile)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, name, cli.Usagef("%s: there is no such file: correct the path", name)
	case err != nil:
		return nil, name, cli.Usagef("%s: %v", name, cli.Unreadable(err))
	}
	return data, name, nil
}
