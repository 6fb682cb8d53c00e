package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/explain"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// tailPoll is how often a file that is followed is looked at.
const tailPoll = 200 * time.Millisecond

// auditTail prints records as people read them.
func (c *program) auditTail() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail [FILE] [flags]",
		Short: "Print the last records in readable form; -f goes on as they come",
		Long: `Print the last records in readable form: when, who, which tool, what was decided, what came of
it, and below that the rules that acted and the edits that were made. Without FILE it is audit.file
of the configuration. It does not check anything: see "attache audit verify".`,
		Example: `  attache audit tail -f
  attache audit tail -n 50 audit.jsonl`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) > 1 {
				return cli.Usagef("%d files: give one, or none for audit.file of the configuration", len(files))
			}
			return nil
		},
	}
	flags := config.AddFlag(cmd, config.Flags{}, "config", "FILE", config.FileHelp)
	n := cmd.Flags().UintP("lines", "n", 10, "how many records to print")
	follow := cmd.Flags().BoolP("follow", "f", false, "go on with the records to come, until interrupted")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		file, err := c.auditFile(files, flags)
		if err != nil {
			return err
		}
		t := &auditTailer{path: file, show: recordPrinter{c.Stdout, term.HasColour(c.Getenv, c.Stdout), time.Local}}
		if err := t.last(*n); err != nil {
			return err
		}
		if *follow {
			return t.follow(cmd.Context())
		}
		return nil
	}
	return cmd
}

// An auditTailer reads a file that grows, and may be renamed and begun anew.
type auditTailer struct {
	path string
	show recordPrinter
	f    *os.File
	line []byte // the beginning of one that is not whole yet
}

// last prints the last n records that are there.
func (t *auditTailer) last(n uint) error {
	if err := t.open(); err != nil {
		return err
	}
	var kept [][]byte
	err := t.read(func(line []byte) error {
		if kept = append(kept, bytes.Clone(line)); uint(len(kept)) > n {
			kept = kept[1:]
		}
		return nil
	})
	for _, line := range kept {
		if err == nil {
			err = t.show.record(line)
		}
	}
	return err
}

// follow prints what comes until ctx is done.
func (t *auditTailer) follow(ctx context.Context) error {
	tick := time.NewTicker(tailPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := t.more(); err != nil {
			return err
		}
	}
}

// more prints what has come since.
func (t *auditTailer) more() error {
	renamed := t.renamed() // before reading: what is renamed is written no more
	if err := t.read(t.show.record); err != nil || !renamed {
		return err
	}
	return t.reopen()
}

// renamed reports whether another file stands where this one did.
func (t *auditTailer) renamed() bool {
	here, err := os.Stat(t.path)
	if err != nil {
		return false // not begun yet
	}
	open, err := t.f.Stat()
	return err == nil && !os.SameFile(here, open)
}

// reopen goes on with the file that stands where this one did.
func (t *auditTailer) reopen() error {
	old := t.f
	if err := t.open(); err != nil {
		return err
	}
	_ = old.Close()
	t.line = nil
	return t.read(t.show.record)
}

// open opens the file as it stands now.
func (t *auditTailer) open() error {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return noAuditFile(t.path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, cli.Unreadable(err))
	}
	t.f = f
	return nil
}

// read calls each for every whole line from where it stands to the end.
func (t *auditTailer) read(each func(line []byte) error) error {
	r := bufio.NewReader(t.f)
	for {
		part, err := r.ReadSlice('\n')
		t.line = append(t.line, part...)
		if len(t.line) > chain.MaxLine {
			t.line = t.line[:chain.MaxLine] // no record: it is shown as such
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", t.path, cli.Unreadable(err))
		default:
			if err := each(t.line); err != nil {
				return err
			}
			t.line = t.line[:0]
		}
	}
}

// An auditRecord is what is shown of one.
type auditRecord struct {
	Time     time.Time
	Kind     string
	Session  string
	User     string
	Tenant   string
	Server   string
	Method   string
	Tool     string
	Prompt   string
	Resource string
	SentAs   string `json:"sent_as"`
	Decision string
	DryRun   bool `json:"dry_run"`
	Result   string
	Code     int
	Request  int `json:"request_bytes"`
	Reply    int `json:"reply_bytes"`
	MS       float64
	Briefing bool
	Why      string
	Records  int
	Trace    string `json:"trace_id"`
	Rules    []struct{ Layer, Rule, Act, Why string }
	Edits    []struct{ Layer, Rule, Path, Source string }
}

// A recordPrinter prints records for people. What came over the wire cannot move
// the cursor.
type recordPrinter struct {
	out     io.Writer
	colours bool
	zone    *time.Location
}

// record prints one line of the file.
func (p recordPrinter) record(line []byte) error {
	var r auditRecord
	if json.Unmarshal(line, &r) != nil {
		return p.print(term.Bad, "a line that is no record: "+strconv.Itoa(len(line))+" bytes; see \"attache audit verify\"")
	}
	switch r.Kind {
	case "call", "intent", "aside":
		return p.call(&r)
	}
	text := r.Why
	if r.Records > 0 {
		text = cli.Plural(r.Records, "record") + " missing: " + text
	}
	return p.print(term.Quiet, strings.TrimRight(p.moment(r.Time)+"  "+r.Kind+"  "+text, " "))
}

// call prints a record of a call.
func (p recordPrinter) call(r *auditRecord) error {
	words := []styled{
		{term.Quiet, p.moment(r.Time)},
		{term.Plain, who(r)},
		{term.Heading, target(r)},
		{style(r), r.Decision},
	}
	add := func(s term.Style, text string) { words = append(words, styled{s, text}) }
	switch {
	case r.Kind == "intent":
		add(term.Plain, "about to be sent")
	case r.Kind == "aside":
		add(style(r), r.Why)
	default:
		add(style(r), result(r))
		add(term.Plain, strconv.FormatFloat(r.MS, 'f', 1, 64)+" ms")
	}
	add(term.Quiet, sizes(r))
	if r.Briefing {
		add(term.Good, "briefed")
	}
	if r.DryRun {
		add(term.Notice, "dry run")
	}
	if r.Trace != "" {
		add(term.Quiet, "trace "+r.Trace)
	}
	if err := p.line(words...); err != nil {
		return err
	}
	return p.details(r)
}

// details prints which rules acted, and what was edited.
func (p recordPrinter) details(r *auditRecord) error {
	for _, n := range r.Rules {
		text := "    " + n.Act + " by " + by(n.Layer, n.Rule)
		if n.Why != "" {
			text += ": " + n.Why
		}
		if err := p.print(explain.ActStyle(n.Act), text); err != nil {
			return err
		}
	}
	for _, e := range r.Edits {
		text := "    " + e.Path + " edited by " + by(e.Layer, e.Rule)
		if e.Source != "" {
			text += ": " + e.Source
		}
		if err := p.print(term.Quiet, text); err != nil {
			return err
		}
	}
	return nil
}

func by(layer, rule string) string {
	if rule != "" {
		return rule
	}
	return layer
}

// style is how a call stands out.
func style(r *auditRecord) term.Style {
	switch {
	case r.Decision == "refused", r.Kind == "aside":
		return term.Bad
	case r.Result == "ok":
		return term.Good
	case r.Kind == "intent":
		return term.Plain
	}
	return term.Notice
}

func (p recordPrinter) moment(t time.Time) string {
	return t.In(p.zone).Format("2006-01-02 15:04:05.000")
}

// who says who called: the person, and whom for.
func who(r *auditRecord) string {
	switch {
	case r.User == "" && r.Tenant == "":
		return "nobody known"
	case r.Tenant == "":
		return r.User
	}
	return r.User + " (" + r.Tenant + ")"
}

// target says what was called.
func target(r *auditRecord) string {
	text := r.Method
	for _, name := range []string{r.Resource, r.Prompt, r.Tool} {
		if name != "" {
			text = name
		}
	}
	if r.Server != "" {
		text = r.Server + ": " + text
	}
	if r.SentAs != "" {
		text += " (sent as " + r.SentAs + ")"
	}
	return text
}

func result(r *auditRecord) string {
	if r.Code != 0 {
		return r.Result + " " + strconv.Itoa(r.Code)
	}
	return r.Result
}

func sizes(r *auditRecord) string {
	text := strconv.Itoa(r.Request) + " B in"
	if r.Reply > 0 {
		text += ", " + strconv.Itoa(r.Reply) + " B out"
	}
	return text
}

// A styled is a part of a line.
type styled struct {
	style term.Style
	text  string
}

// print prints a line in one style.
func (p recordPrinter) print(style term.Style, text string) error {
	return p.line(styled{style, text})
}

// line prints parts, with space between them. What stands in a record cannot be taken
// for a style: control characters are taken out of it before.
func (p recordPrinter) line(parts ...styled) error {
	var b strings.Builder
	for _, part := range parts {
		if part.text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("  ")
		}
		b.WriteString(term.Paint(p.colours, part.style, strings.Map(cli.Printable, part.text)))
	}
	_, err := fmt.Fprintln(p.out, b.String())
	return err
}
