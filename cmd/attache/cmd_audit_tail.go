package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// tailPoll is how often a file that is followed is looked at.
const tailPoll = 200 * time.Millisecond

// auditTail prints records as people read them.
func (c *cli) auditTail() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail [FILE] [flags]",
		Short: "Print the last records in readable form; -f goes on as they come",
		Long: `Print the last records in readable form: when, who, which tool, what was decided, what came of
it, and below that the rules that acted and the edits that were made. Without FILE it is audit.file
of the configuration. It does not check anything: see "attache audit verify".`,
		Example: "  attache audit tail -f",
		Args:    cobra.MaximumNArgs(1),
	}
	flags := addFlag(cmd, flagValues{}, "config", "FILE", configHelp)
	n := cmd.Flags().IntP("lines", "n", 10, "how many records to print")
	follow := cmd.Flags().BoolP("follow", "f", false, "go on with the records to come, until interrupted")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		file, err := c.auditFile(files, flags)
		if err != nil {
			return err
		}
		t := &auditTailer{path: file, show: recordPrinter{c.Stdout, c.colours(c.Stdout), time.Local}}
		if err := t.last(max(*n, 0)); err != nil {
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
func (t *auditTailer) last(n int) error {
	f, err := os.Open(t.path)
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, reason(err))
	}
	t.f = f
	var kept [][]byte
	err = t.read(func(line []byte) error {
		if kept = append(kept, bytes.Clone(line)); len(kept) > n {
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
	f, err := os.Open(t.path)
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, reason(err))
	}
	_ = t.f.Close()
	t.f, t.line = f, nil
	return t.read(t.show.record)
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
			return err
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
		return p.print(demoBad, "a line that is no record: "+strconv.Itoa(len(line))+" bytes; see \"attache audit verify\"")
	}
	switch r.Kind {
	case "call", "intent", "aside":
		return p.call(&r)
	}
	text := r.Why
	if r.Records > 0 {
		text = plural(r.Records, "record") + " missing: " + text
	}
	return p.print(demoQuiet, strings.TrimRight(p.moment(r.Time)+"  "+r.Kind+"  "+text, " "))
}

// call prints a record of a call.
func (p recordPrinter) call(r *auditRecord) error {
	words := []string{p.moment(r.Time), who(r), target(r), r.Decision}
	switch {
	case r.Kind == "intent":
		words = append(words, "about to be sent")
	case r.Kind == "aside":
		words = append(words, r.Why)
	default:
		words = append(words, result(r), strconv.FormatFloat(r.MS, 'f', 1, 64)+" ms")
	}
	words = append(words, sizes(r))
	if r.Briefing {
		words = append(words, "briefed")
	}
	if r.DryRun {
		words = append(words, "dry run")
	}
	if r.Trace != "" {
		words = append(words, "trace "+r.Trace)
	}
	if err := p.print(style(r), strings.Join(words, "  ")); err != nil {
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
		if err := p.print(demoQuiet, text); err != nil {
			return err
		}
	}
	for _, e := range r.Edits {
		text := "    " + e.Path + " edited by " + by(e.Layer, e.Rule)
		if e.Source != "" {
			text += ": " + e.Source
		}
		if err := p.print(demoQuiet, text); err != nil {
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
func style(r *auditRecord) demoStyle {
	switch {
	case r.Decision == "refused", r.Kind == "aside":
		return demoBad
	case r.Result == "ok", r.Kind == "intent":
		return demoPlain
	}
	return demoLogged
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

// print prints a line in a style.
func (p recordPrinter) print(style demoStyle, text string) error {
	text = strings.Map(printable, text)
	if p.colours && style != demoPlain {
		text = "\x1b[" + string(style) + "m" + text + "\x1b[0m"
	}
	_, err := fmt.Fprintln(p.out, text)
	return err
}
