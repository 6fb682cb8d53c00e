// Package replays replays recorded sessions with a configuration, and prints every line to the server or
// the client that differs from the recording.
package replays

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/robustio"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/replay"
)

// A Replayer replays recordings with one configuration.
type Replayer struct {
	cli.Process
	// Settings are the current settings, without the flags and variables of a recording.
	Settings *config.Settings
	Flags    setting.Flags
	// Update rewrites the files with the current output.
	Update bool
	Log    *slog.Logger
}

// maxRecording limits the memory that is used if the path is wrong, for example that of a device.
const maxRecording = 1 << 30

// Run replays the files. It returns exit status 1 if one of them differs.
func (r *Replayer) Run(ctx context.Context, files []string) error {
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
		if r.Update {
			if err := rewriteFile(file, result.Session); err != nil {
				return fmt.Errorf("%s cannot be rewritten: %w: make room for it, and let this user write in its directory", file, cli.Reason(err))
			}
			fmt.Fprintf(r.Stdout, "%s: rewritten\n", file)
		}
	}
	if differ > 0 && !r.Update {
		return cli.ExitError(cli.ExitFailure)
	}
	return nil
}

func (r *Replayer) play(ctx context.Context, file string) (*replay.Result, error) {
	data, err := cli.ReadAtMost(file, maxRecording)
	if err != nil {
		return nil, cli.Unreadable(err)
	}
	recorded, err := record.Read(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if recorded.Cut {
		fmt.Fprintf(r.Stdout, "%s: the end is missing, perhaps because the disk was full: attache plays the part before it\n", file)
	}
	p := assembly.RecordedProcess(r.Process, recorded.Header, r.Settings)
	s, err := config.LoadServed(p, r.Flags, recorded.Header.Server)
	if err != nil {
		return nil, err
	}
	conn, err := assembly.Single(assembly.Options{Process: p, Log: r.Log}, s, assembly.ForRecording(recorded))
	if err != nil {
		return nil, err
	}
	defer conn.Shared().Close()
	scrub := record.NewScrubber(config.Secrets(p, s, conn.Shared().Secrets()))
	o := conn.Relay()
	o.Restart = conn.Restart()
	return replay.Play(ctx, recorded, replay.Options{Proxy: o, Scrub: scrub.Line})
}

// show prints differences, each with its line in the file.
func (r *Replayer) show(file string, all []replay.Difference) {
	for _, d := range all {
		place := file
		if d.Event >= 0 {
			place = fmt.Sprintf("%s:%d", file, d.Event+2) // the header is line 1
		}
		fmt.Fprintf(r.Stdout, "%s: %s\n", place, r.paint(d.String()))
	}
	fmt.Fprintf(r.Stdout, "%s: %s\n", file, cli.Plural(len(all), "difference"))
}

// paint colours the wanted and the actual line, for a terminal.
func (r *Replayer) paint(text string) string {
	colours := term.HasColour(r.Getenv, r.Stdout)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "  want "):
			lines[i] = term.Paint(colours, term.Bad, line)
		case strings.HasPrefix(line, "  got "):
			lines[i] = term.Paint(colours, term.Good, line)
		}
	}
	return strings.Join(lines, "\n")
}

// rewriteFile replaces the content of a file in one step, and keeps its mode. It follows links.
func rewriteFile(file string, s *record.Session) error {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".replay-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails if it was renamed
	if err := errors.Join(s.Write(tmp), tmp.Chmod(info.Mode().Perm()), tmp.Close()); err != nil {
		return err
	}
	return robustio.Rename(tmp.Name(), file)
}
