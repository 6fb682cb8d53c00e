package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/replay"
)

const replayHelp = `Play sessions that were recorded with --record through today's configuration, and
show every line that reaches the server or the client otherwise than it did then.

The client and the server of a recording are played from the file: no program is
started. The exit status is 1 if anything differs.`

// replayCommand plays recorded sessions.
func (c *program) replayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "replay FILE... [flags]",
		Short:   "Play recorded sessions through today's configuration, show every difference",
		Long:    replayHelp,
		Example: "  attache --record session.jsonl -- npx -y @cyanheads/git-mcp-server\n  attache replay session.jsonl",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("no recording to play: name the files, as in \"%s session.jsonl\"; \"attache --record session.jsonl -- COMMAND\" makes one", cmd.CommandPath())
			}
			return nil
		},
	}
	flags := config.AddFlags(cmd)
	update := cmd.Flags().Bool("update", false, "rewrite the files with what comes out today")
	_ = cmd.Flags().MarkHidden("record")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		s, err := config.Load(c.Process, flags, nil)
		if err != nil {
			return err
		}
		r := &replayer{program: c, s: s, flags: flags, update: *update, log: logging.New(c.Process, s, c.Stderr)}
		return r.run(cmd.Context(), files)
	}
	return cmd
}

// A replayer plays recordings with one configuration.
type replayer struct {
	*program
	s      *config.Settings // of today, without what a recording was given
	flags  config.Flags
	update bool
	log    *slog.Logger
}

// maxRecording keeps a wrong path, such as a device, from filling the memory.
const maxRecording = 1 << 30

// run plays the files, and ends in the exit status 1 if one of them differs.
func (r *replayer) run(ctx context.Context, files []string) error {
	differ := 0
	for _, file := range files {
		result, err := r.play(ctx, file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(result.Differences) == 0 {
			fmt.Fprintf(r.Stdout, "%s: no difference\n", file)
			continue
		}
		differ++
		r.show(file, result.Differences)
		if r.update {
			if err := rewriteFile(file, result.Session); err != nil {
				return err
			}
			fmt.Fprintf(r.Stdout, "%s: rewritten\n", file)
		}
	}
	if differ > 0 && !r.update {
		return cli.ExitError(cli.ExitFailure)
	}
	return nil
}

// play plays one file with layers of its own.
func (r *replayer) play(ctx context.Context, file string) (*replay.Result, error) {
	data, err := cli.ReadAtMost(file, maxRecording)
	if err != nil {
		return nil, cli.Unreadable(err)
	}
	recorded, err := record.Read(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	p := assembly.RecordedProcess(r.Process, recorded.Header, r.s)
	s, err := config.Load(p, r.flags, nil)
	if err != nil {
		return nil, err
	}
	conn, err := assembly.Single(assembly.Options{Process: p, Log: r.log}, s, assembly.ForRecording(recorded))
	if err != nil {
		return nil, err
	}
	scrub := record.NewScrubber(config.Secrets(p, s, conn.Shared().Secrets()))
	return replay.Play(ctx, recorded, replay.Options{Proxy: conn.Relay(), Scrub: scrub.Line})
}

// show prints differences, each with its place in the file.
func (r *replayer) show(file string, all []replay.Difference) {
	for _, d := range all {
		place := file
		if d.Event >= 0 {
			place = fmt.Sprintf("%s:%d", file, d.Event+2) // the header is line 1
		}
		fmt.Fprintf(r.Stdout, "%s: %s\n", place, r.paint(d.String()))
	}
	fmt.Fprintf(r.Stdout, "%s: %s\n", file, cli.Plural(len(all), "difference"))
}

// paint colours what was wanted and what came, for a terminal.
func (r *replayer) paint(text string) string {
	if !term.HasColour(r.Getenv, r.Stdout) {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "  want "):
			lines[i] = "\x1b[31m" + line + "\x1b[0m"
		case strings.HasPrefix(line, "  got "):
			lines[i] = "\x1b[32m" + line + "\x1b[0m"
		}
	}
	return strings.Join(lines, "\n")
}

// rewriteFile replaces the content of a file at once, and keeps its mode.
func rewriteFile(file string, s *record.Session) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".replay-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // nothing is there any more when all went well
	err = s.Write(tmp)
	if closing := tmp.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), info.Mode().Perm())
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	return err
}
