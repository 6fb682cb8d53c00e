package proxytest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
)

// Play plays the scripts in the files that match pattern, with the given layers
// in the relay. The package comment describes the scripts.
//
// All scripts of all files share the layers. Use a [Player] if each script needs
// new ones.
func Play(t *testing.T, pattern string, layers ...middleware.Layer) {
	t.Helper()
	Player{Options: proxy.Options{Layers: layers}}.Play(t, pattern)
}

// A Player plays scripts.
type Player struct {
	// Options has the options of every script. Its option lines override them.
	Options proxy.Options

	// Named has functions that make the layers which a layers line may name. Each
	// script gets new ones, after those of Options. arg is the text after an equals
	// sign that follows the name.
	Named map[string]func(s *Session, arg string) middleware.Layer
}

// Play plays the scripts in the files that match pattern, each as a subtest.
func (p Player) Play(t *testing.T, pattern string) {
	t.Helper()
	for _, file := range matching(t, pattern) {
		scripts, err := readScripts(file, p.Options)
		if err != nil {
			t.Error(err)
			continue
		}
		base := filepath.Base(file)
		for _, s := range scripts {
			t.Run(strings.TrimSuffix(base, filepath.Ext(base))+"/"+s.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					if err := p.run(newSession(t, 0), base, s); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

// matching returns the files that match pattern, of which there must be one.
func matching(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file matches %s (%v)", pattern, err)
	}
	return files
}

// run plays one script, in a bubble.
func (p Player) run(session *Session, file string, s script) error {
	setup, err := p.setup(session, s)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	session.run(setup)
	r := run{Session: session, early: map[*Peer][][]byte{}}
	for _, st := range s.steps {
		synctest.Wait()
		if err := r.step(st); err != nil {
			return fmt.Errorf("%s:%d: %s: %w", file, st.line, st.verb, err)
		}
	}
	synctest.Wait()
	if err := r.nothingLeft(); err != nil {
		return fmt.Errorf("%s: at the end of the script: %w", file, err)
	}
	return nil
}

func (p Player) setup(session *Session, s script) (Setup, error) {
	c := s.setup
	c.Options.Layers = slices.Clone(c.Options.Layers)
	for _, word := range s.layers {
		name, arg, _ := strings.Cut(word, "=")
		layer, ok := p.Named[name]
		if !ok {
			return c, fmt.Errorf("there is no layer %q", name)
		}
		c.Options.Layers = append(c.Options.Layers, layer(session, arg))
	}
	c.Options.Layers = append(c.Options.Layers, s.needs)
	if r := c.Options.Restart; r != nil && r != p.Options.Restart {
		r.Changed = func(method, before, after string) { session.Note("changed %s", method) }
	}
	return c, nil
}

// A run is a script being played.
type run struct {
	*Session
	early     map[*Peer][][]byte // lines that were read while the script expected another one
	notesRead []string           // notes that the script has not expected yet
	noting    bool               // the script expects notes
}

// step executes one line of the script.
func (r *run) step(st step) error {
	if st.peer != "" {
		return r.traffic(st)
	}
	switch st.verb {
	case "close":
		r.peer(st.text).Close()
	case "deaf":
		r.peer(st.text).CloseInput()
	case "eof":
		return r.eof(r.peer(st.text))
	case "exit":
		r.Exit(exitError(st.text))
	case "unstartable":
		r.RefuseStart(exitError(st.text))
	case "restart":
		if accepted := r.Restart(); accepted == (st.text == "refused") {
			return fmt.Errorf("the server is started again: %t", accepted)
		}
		synctest.Wait()
	case "cancel":
		r.Cancel()
	case "wait":
		d, _ := time.ParseDuration(st.text)
		time.Sleep(d)
	case "quiet":
		return r.quiet()
	case "end":
		return r.end(st.text)
	case "note":
		return r.note(st.text)
	case "log":
		if !strings.Contains(r.Log(), st.text) {
			return fmt.Errorf("nothing logged has %q in it", st.text)
		}
	}
	return nil
}

func exitError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func (r *run) peer(name string) *Peer {
	if name == "client" {
		return r.Client
	}
	return r.Server
}

func (r *run) traffic(st step) error {
	from, to := r.peer(st.peer), r.peer(st.peer)
	if st.send && st.expected {
		if to = r.Server; from == r.Server {
			to = r.Client
		}
	}
	if st.send {
		if _, err := from.output().Write(st.raw); err != nil {
			return err
		}
		synctest.Wait()
	}
	if !st.expected {
		return nil
	}
	if st.anyPlace {
		return r.amongPending(to, st.raw)
	}
	got, err := r.next(to)
	if err != nil {
		return fmt.Errorf("nothing has reached the %s:\n  want %s", to.name, st.raw)
	}
	if d := record.Diff(st.raw, got); d != "" {
		return fmt.Errorf("another line has reached the %s:\n%s", to.name, d)
	}
	return nil
}

// next returns the next line that has reached p.
func (r *run) next(p *Peer) ([]byte, error) {
	if early := r.early[p]; len(early) > 0 {
		r.early[p] = early[1:]
		return early[0], nil
	}
	return p.input().ReadLine(0)
}

// amongPending removes a line from those that have reached p.
func (r *run) amongPending(p *Peer, want []byte) error {
	for line, err := p.input().ReadLine(0); err == nil; line, err = p.input().ReadLine(0) {
		r.early[p] = append(r.early[p], line)
	}
	i := slices.IndexFunc(r.early[p], func(line []byte) bool { return bytes.Equal(line, want) })
	if i < 0 {
		return fmt.Errorf("this line is not among the %d that have reached the %s: %s", len(r.early[p]), p.name, want)
	}
	r.early[p] = slices.Delete(r.early[p], i, i+1)
	return nil
}

func (r *run) eof(p *Peer) error {
	line, err := r.next(p)
	switch {
	case err == nil:
		return fmt.Errorf("a line has reached the %s: %q", p.name, line)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("the %s's input has not ended", p.name)
	}
	return nil
}

func (r *run) quiet() error {
	for _, p := range []*Peer{r.Client, r.Server} {
		if len(r.early[p]) > 0 || p.input().Len() > 0 {
			line, _ := r.next(p)
			return fmt.Errorf("a line has reached the %s that nobody expected: %q", p.name, line)
		}
	}
	return nil
}

func (r *run) end(text string) error {
	select {
	case <-r.Over():
	case <-time.After(patience):
		return errors.New("the session has not ended")
	}
	switch {
	case text == "" && r.err != nil:
		return fmt.Errorf("the session has ended with an error: %w", r.err)
	case text != "" && (r.err == nil || !strings.Contains(r.err.Error(), text)):
		return fmt.Errorf("the session has ended with the error %v, which has no %q in it", r.err, text)
	}
	return nil
}

func (r *run) note(text string) error {
	r.noting = true
	r.notesRead = append(r.notesRead, r.Notes()...)
	if len(r.notesRead) == 0 {
		return fmt.Errorf("no note was taken:\n  want %s", text)
	}
	got := r.notesRead[0]
	r.notesRead = r.notesRead[1:]
	if got != text {
		return fmt.Errorf("another note was taken:\n  want %s\n  got  %s", text, got)
	}
	return nil
}

func (r *run) nothingLeft() error {
	if left := append(r.notesRead, r.Notes()...); r.noting && len(left) > 0 {
		return fmt.Errorf("a note was taken that nobody expected: %s", left[0])
	}
	return r.quiet()
}
