package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A Command changes or prints the content of a store, for a person.
type Command struct {
	Store          Store
	Stdout, Stderr io.Writer
}

// Trust trusts the policies of the workspace at path, and prints them.
func (c Command) Trust(path string) error {
	w, err := open(path)
	if err != nil {
		return err
	}
	e, problems := filesource.ParseLoose(w.file(), w.text)
	bad := false
	for _, p := range problems {
		fmt.Fprintln(c.Stdout, cli.Printable(p.String()))
		bad = bad || !p.Warning
	}
	switch {
	case bad:
		return cli.Usagef("nothing was trusted: correct the file first")
	case e.Empty():
		return cli.Usagef("%s has no policies and no objectives: write one first", cli.Printable(w.file()))
	}
	if err := c.Store.Trust(w.path, w.real, w.text, time.Now()); err != nil {
		return c.denied(err)
	}
	c.reportHidden(w)
	_, err = fmt.Fprintf(c.Stdout, "%s\n\ntrusted: %s, as it is now (%s); from the next session on\n",
		policy.Render(e, 0), cli.Printable(w.file()), policy.Digest(string(w.text)))
	return err
}

// Show prints the policy file of the workspace at path, with escapes for invisible characters, and
// whether it is trusted.
func (c Command) Show(path string) error {
	w, err := open(path)
	if err != nil {
		return err
	}
	shown := c.reportHidden(w)
	fmt.Fprintln(c.Stdout, strings.TrimRight(shown, "\n"))
	_, err = fmt.Fprintf(c.Stderr, "attache: the policies of %s %s\n", cli.Printable(w.path), c.state(w))
	return err
}

// Untrust removes the trust in the workspace at path.
func (c Command) Untrust(path string) error {
	workspace, _, _ := Resolve(path) // the workspace need not exist
	found, err := c.Store.Untrust(path)
	switch {
	case err != nil:
		return c.denied(err)
	case !found:
		return fmt.Errorf("%s was not trusted: \"attache trust --list\" shows what is", cli.Printable(workspace))
	}
	_, err = fmt.Fprintf(c.Stdout, "untrusted: %s; sessions that have had its policies keep them\n", cli.Printable(workspace))
	return err
}

// List prints the trusted workspaces, and whether their policies have changed.
func (c Command) List() error {
	all, err := c.Store.All()
	if err != nil {
		return c.denied(err)
	}
	if len(all) == 0 {
		fmt.Fprintln(c.Stderr, "attache: nothing is trusted; \"attache trust PATH\" trusts a workspace's policies")
	}
	for _, r := range all {
		state := "trusted"
		switch text, err := Read(r.Real); {
		case errors.Is(err, fs.ErrNotExist):
			state = "gone"
		case err != nil:
			state = "unreadable"
		case policy.Digest(string(text)) != r.Digest:
			state = "changed"
		}
		fmt.Fprintf(c.Stdout, "%-10s  %s  %s\n", state, r.Trusted.Format(time.DateOnly), cli.Printable(r.Workspace))
	}
	return nil
}

// A workspace is a workspace with a policy file.
type workspace struct {
	path, real string // the results of [Resolve]
	text       []byte
}

func (w workspace) file() string { return filepath.Join(w.path, filepath.FromSlash(File)) }

// open reads the policy file of the workspace at path.
func open(path string) (w workspace, err error) {
	w.path, w.real, err = Resolve(path)
	if err == nil {
		w.text, err = Read(w.real)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("there is no %s in %s: give the workspace that has one", File, cli.Printable(w.path))
	case err != nil:
		err = fmt.Errorf("%s in %s cannot be read: %w", File, cli.Printable(w.path), cli.Unreadable(err))
	}
	return w, err
}

// reportHidden returns the text of the workspace's policies with invisible characters escaped, and
// prints a warning if there are any.
func (c Command) reportHidden(w workspace) string {
	text := string(textfile.TrimMark(w.text))
	shown, hidden := policy.Escape(strings.ReplaceAll(text, "\r\n", "\n"))
	if hidden > 0 {
		fmt.Fprintf(c.Stderr, "attache: the text has %s that cannot be seen (--show writes them as <U+...>); the briefing leaves them out: ask who wrote them, and why\n", cli.Plural(hidden, "character"))
	}
	return shown
}

// state says whether the text is trusted, and what to do.
func (c Command) state(w workspace) string {
	switch r, known := c.Store.Find(w.path); {
	case !known:
		return `are not trusted: "attache trust" with that path uses them`
	case r.Digest != policy.Digest(string(w.text)):
		return "have changed since they were trusted on " + r.Trusted.Format(time.DateOnly) + `, and are not used: "attache trust" with that path trusts them again`
	}
	return `are trusted: "attache untrust" with that path ends it`
}

func (c Command) denied(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: make room for it", err)
	}
	return fmt.Errorf("%w: correct the permissions of %s", err, c.Store.Dir)
}
