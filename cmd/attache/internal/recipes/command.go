package recipes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientfile"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

// Find returns the recipe of that name. The error suggests a similar name.
func Find(name string) (Recipe, error) {
	var names []string
	for _, r := range All() {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	if near := cli.Nearest(name, names); near != "" {
		return Recipe{}, cli.Usagef("there is no recipe %q: did you mean %q?", name, near)
	}
	return Recipe{}, cli.Usagef("there is no recipe %q: choose %s", name, cli.Quoted(names))
}

// A Command changes the configuration file for a person.
type Command struct {
	cli.Process
	// DryRun prints the changes without making them.
	DryRun bool
}

// Add adds a recipe to the configuration file at path. Each parameter has the form NAME=VALUE.
func (c Command) Add(path, name string, parameters []string) error {
	r, err := Find(name)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, text := range parameters {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return cli.Usagef("--set %q: write it as NAME=VALUE", text)
		}
		values[key] = value
	}
	body, err := r.Body(values)
	if err != nil {
		return cli.Usagef("%v", err)
	}
	return c.edit(path, func(content []byte) ([]byte, error) { return Add(content, name, body) })
}

// Remove removes a recipe from the configuration file at path.
func (c Command) Remove(path, name string) error {
	err := c.edit(path, func(content []byte) ([]byte, error) { return remove(content, name) })
	if errors.Is(err, errAbsent) {
		return fmt.Errorf("the recipe %s is not in the configuration, or was not put there by \"attache recipe add\"", name)
	}
	return err
}

// edit prints the lines of the configuration file that differ, and then changes the file. The new
// content must be valid.
func (c Command) edit(path string, change func([]byte) ([]byte, error)) error {
	var before, after []byte
	checked := func(content []byte) (_ []byte, err error) {
		before = content
		if after, err = change(content); err != nil {
			return nil, err
		}
		return after, config.Check(c.Process, path, after)
	}
	content, _, err := clientfile.Load(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err == nil || fresh {
		_, err = checked(content)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := c.report(path, before, after); err != nil || c.DryRun {
		return err
	}
	if fresh {
		err = create(path, after)
	} else {
		_, err = clientfile.Update(path, clientfile.Backups(c.StateDir, path), time.Now(), checked)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// create writes a file that does not exist yet. After an error there is none: a part of a recipe may lack rules.
func create(path string, content []byte) error {
	const remedy = "let this user write there, or name another file with --config"
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("its directory cannot be made: %w: %s", cli.Reason(err), remedy)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("it cannot be made: %w: %s", cli.Reason(err), remedy)
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("it cannot be written: %w: make room for it", cli.Reason(err)), os.Remove(path))
	}
	return nil
}

// report prints the lines that were added or removed.
func (c Command) report(path string, before, after []byte) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", path)
	sign, lines, from := "+", after, before
	if len(after) < len(before) {
		sign, lines, from = "-", before, after
	}
	start, length := 0, len(lines)-len(from)
	for start < len(from) && lines[start] == from[start] {
		start++
	}
	// The change begins at the beginning of a line, unless the file does not end with a line break.
	if line := bytes.LastIndexByte(lines[:start], '\n') + 1; bytes.HasSuffix(lines[:start+length], lines[line:start]) {
		start = line
	}
	for line := range bytes.Lines(bytes.TrimLeft(lines[start:start+length], "\r\n")) {
		fmt.Fprintf(&text, "%s%s\n", sign, bytes.TrimRight(line, "\r\n"))
	}
	if len(after) == 0 {
		text.WriteString("The file is empty then: an attache that runs keeps its rules until it ends.\n")
	}
	if c.DryRun {
		text.WriteString("Nothing was changed: leave out --dry-run to do it.\n")
	}
	_, err := c.Stdout.Write([]byte(text.String()))
	return err
}
