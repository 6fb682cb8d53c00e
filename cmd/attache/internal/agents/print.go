package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// Use opens the registry of the settings and calls f with it. If no session has created a registry yet, f gets nil.
func Use(p cli.Process, s *config.Settings, f func(*teams.Store) error) error {
	server, err := assembly.OpenForPerson(p, s)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	if server != nil {
		defer server.Close()
	} else if _, err := os.Stat(assembly.TeamsFile(p)); errors.Is(err, fs.ErrNotExist) {
		return f(nil)
	}
	db, err := assembly.OpenTeams(p, server)
	if err != nil {
		return err
	}
	return errors.Join(f(db), db.Close())
}

// Print prints a table of the agents in db, which may be nil. Without agents it says so on stderr.
func Print(ctx context.Context, p cli.Process, db *teams.Store) error {
	all, err := agentsOf(ctx, db, "")
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(p.Stderr, "attache: no session has started an agent yet; see \"attache teams --help\"")
		return nil
	}
	rows := [][]string{{"SESSION", "AGENT", "STATE", "CREATED", "RUNS", "EXIT", "USD", "PARENT", "TITLE"}}
	for _, s := range all {
		exit := ""
		if !s.Active() {
			exit = fmt.Sprint(s.ExitStatus)
		}
		rows = append(rows, []string{s.ID, s.Agent, string(s.State), s.Created.Format(time.DateTime), fmt.Sprint(s.Run), exit, s.CostUSD, s.Parent, s.Title})
	}
	return term.Table(p.Stdout, rows)
}

// agentsOf returns the agents in db, which may be nil. If id is not empty, it returns only that agent.
func agentsOf(ctx context.Context, db *teams.Store, id string) ([]*teams.Session, error) {
	if db == nil {
		return nil, nil
	}
	return db.Agents(ctx, id)
}

func find(ctx context.Context, db *teams.Store, id string) (*teams.Session, error) {
	found, err := agentsOf(ctx, db, id)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 && id != "" {
		return found[0], nil
	}
	return nil, cli.Usagef("there is no agent %q: see \"attache agents list\"", id)
}

// PrintLogs prints the output of an agent's last run.
func PrintLogs(ctx context.Context, p cli.Process, db *teams.Store, id string) error {
	s, err := find(ctx, db, id)
	if err != nil {
		return err
	}
	name := filepath.Join(outputDirectory(p), s.ID, fmt.Sprintf("run-%d", s.Run))
	for _, to := range []struct {
		extension string
		out       io.Writer
	}{{".out", p.Stdout}, {".err", p.Stderr}} {
		f, err := os.Open(name + to.extension)
		if errors.Is(err, fs.ErrNotExist) { // a shared registry has the agents of all machines
			return fmt.Errorf("the output of the last run of %s is not here: the run did not start, was on another machine or by another user, or its output was removed after seven days", s.ID)
		}
		if err != nil {
			return err
		}
		err = printOutput(to.out, f, term.IsTerminal(to.out))
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// printOutput writes the output of an agent. To a terminal it does not write control characters, which may
// come from text that the agent read. To a file or a pipe it writes every byte.
func printOutput(to io.Writer, from io.Reader, terminal bool) error {
	if !terminal {
		_, err := io.Copy(to, from)
		return err
	}
	text, err := io.ReadAll(io.LimitReader(from, maxOutput))
	_, writing := io.WriteString(to, term.PrintableLines(strings.ReplaceAll(string(text), "\r\n", "\n")))
	return errors.Join(err, writing)
}

// Stop ends an agent and the agents that it started.
func Stop(ctx context.Context, p cli.Process, db *teams.Store, id string) error {
	s, err := find(ctx, db, id)
	if err != nil {
		return err
	}
	ended, err := db.EndByOperator(ctx, s.Ref)
	for _, id := range ended {
		fmt.Fprintln(p.Stdout, "ended", cli.Printable(id))
	}
	if err == nil && len(ended) == 0 {
		fmt.Fprintln(p.Stdout, cli.Printable(id), "has ended already")
	}
	return err
}
