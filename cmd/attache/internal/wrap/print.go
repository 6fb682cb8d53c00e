package wrap

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientfile"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// reportFile reports what was done, or would be done, to each server of a file.
func (j *Job) reportFile(f mcpclient.File, plan *clientconfig.Plan, warnings []string) {
	title := "File"
	if f.Client != nil {
		title = f.Client.Title
	}
	fmt.Fprintf(&j.report, "%s: %s\n", title, cli.Printable(f.Path))
	for _, w := range slices.Concat(warnings, j.notes) {
		fmt.Fprintf(&j.report, "  note       %s\n", cli.Printable(w))
	}
	for _, step := range plan.Steps {
		fmt.Fprintln(&j.report, "  "+j.stepText(step))
	}
	switch {
	case len(plan.Steps) > 0:
	case len(j.Servers) > 0:
		fmt.Fprintln(&j.report, "  no server of that name is in it")
	case j.Teams:
		fmt.Fprintln(&j.report, "  no servers are in it, and attache-teams was not added: add a server in the client first")
	default:
		fmt.Fprint(&j.report, "  no servers are in it")
		if f.Client == nil && !j.Unwrap {
			fmt.Fprint(&j.report, " under mcpServers, servers, mcp, context_servers, mcp_servers or amp.mcpServers: if they are elsewhere, put \"attache --\" in front of their commands yourself")
		}
		fmt.Fprintln(&j.report)
	}
	if j.DryRun {
		j.showDiff(plan)
	}
	j.changes = j.changes || plan.Changed()
	if plan.Changed() && f.Client != nil && !slices.Contains(j.reread, f.Client.Reread) {
		j.reread = append(j.reread, f.Client.Reread)
	}
}

// stepText returns one line with a server, its line in the file, and what was done to it.
func (j *Job) stepText(s clientconfig.Step) string {
	done, planned := "skipped", ""
	switch {
	case s.Done && j.Repair:
		done, planned = "repaired", "would repair"
	case s.Done && s.Entry.Name == clientconfig.TeamsServer && j.Unwrap:
		done, planned = "removed", "would remove"
	case s.Done && s.Entry.Name == clientconfig.TeamsServer:
		done, planned = "added", "would add"
	case s.Done && j.Unwrap:
		done, planned = "unwrapped", "would unwrap"
	case s.Done:
		done, planned = "wrapped", "would wrap"
	case s.Broken:
		done = "broken"
	}
	word := done
	if s.Done && j.DryRun {
		word = planned
	}
	text := fmt.Sprintf("%s %s", word, cmp.Or(s.Entry.Name, `""`))
	if s.Entry.Line > 0 {
		text += fmt.Sprintf(", line %d", s.Entry.Line)
	}
	if s.Entry.Project != "" {
		text += ", of project " + s.Entry.Project
	}
	if s.Text != "" {
		text += ": " + s.Text
	}
	return cli.Printable(text)
}

// showDiff adds the lines that would change to the report.
func (j *Job) showDiff(plan *clientconfig.Plan) {
	styles := map[byte]term.Style{'@': term.Reason, '-': term.Bad, '+': term.Good}
	coloured := term.HasColour(j.Getenv, j.Stdout)
	for _, l := range plan.Diff(looksSecret) {
		line := string(l.Op) + cli.Printable(l.Text, '\t')
		if l.Op == '@' {
			line = "@@ " + l.Text + " @@"
		}
		fmt.Fprintln(&j.report, term.Paint(coloured, styles[l.Op], line))
	}
}

func looksSecret(argument string) bool {
	scrub := record.NewScrubber(record.Secrets{})
	quoted := wire.Quote(argument)
	return !bytes.Equal(scrub.Line(quoted), quoted)
}

// reportBackup reports the path of the backup that was made. After unwrapping it removes the backups
// that are no longer needed, because the file has everything in them, and reports the others.
func (j *Job) reportBackup(f mcpclient.File, launch clientconfig.Launch, done clientfile.UpdateResult) error {
	left := []string{done.Backup}
	if j.Unwrap {
		var err error
		left, err = clientfile.DropBackups(clientfile.Backups(j.StateDir, done.Path), done.Path, func(content []byte) []byte {
			return clientconfig.Bare(f, content, launch)
		})
		if err != nil {
			return err
		}
		if len(left) == 0 {
			fmt.Fprintln(&j.report, "  removed the backups: the file has all that they had")
		}
	}
	for _, path := range left {
		fmt.Fprintf(&j.report, "  backup in %s\n", cli.Printable(path))
	}
	return nil
}

func (j *Job) reportNext() {
	switch {
	case j.DryRun && j.changes:
		fmt.Fprintln(&j.report, "Nothing was changed: leave out --dry-run to do it.")
		return
	case j.DryRun:
		fmt.Fprintln(&j.report, "Nothing would change.")
		return
	}
	for _, instruction := range j.reread {
		fmt.Fprintln(&j.report, instruction)
	}
}
