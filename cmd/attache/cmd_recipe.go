package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/recipes"
)

// recipeCommand handles ready-made rules.
func (c *program) recipeCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "recipe",
		Short: "Put ready-made rules for known servers into the configuration",
		Long: `A recipe is what the configuration has under servers.NAME: how a server is recognised, and
rules for it. It is put into the user's configuration file, and taken out again, without
changing any other byte of it.`,
		Example: `  attache recipe list
  attache recipe show git
  attache recipe add git
  attache recipe add github --set owner=acme --set repo=shop
  attache recipe remove git`,
	}, c.recipeList(), c.recipeShow(), c.recipeAdd(), c.recipeRemove())
}

func (c *program) recipeList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the recipes",
		Long:    "List the recipes, each with what its rules do.",
		Example: "  attache recipe list",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			var text strings.Builder
			for _, r := range recipes.All() {
				fmt.Fprintf(&text, "%-12s %s\n", r.Name, r.Summary)
			}
			_, err := c.Stdout.Write([]byte(text.String()))
			return err
		},
	}
}

func (c *program) recipeShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Print a recipe",
		Long:    "Print a recipe as it is shipped: what it does, the parameters that it needs, and its rules.",
		Example: "  attache recipe show git",
		Args:    oneRecipe,
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := recipeNamed(args[0])
			if err != nil {
				return err
			}
			_, err = c.Stdout.Write([]byte(r.Text))
			return err
		},
	}
}

// A recipeJob adds a recipe to the configuration, or removes it.
type recipeJob struct {
	*program
	flags  config.Flags
	values []string // NAME=VALUE
	dryRun bool
}

func (c *program) recipeAdd() *cobra.Command {
	job := &recipeJob{program: c}
	cmd := &cobra.Command{
		Use:   "add NAME [flags]",
		Short: "Put a recipe into the configuration",
		Long: `Put a recipe under servers.NAME of the user's configuration file, which is made if there is
none, and print the lines that are added. A backup of the file is kept in attache's state
directory.`,
		Example: `  attache recipe add git --dry-run
  attache recipe add sentry --set organization=acme`,
		Args: oneRecipe,
		RunE: func(_ *cobra.Command, args []string) error { return job.add(args[0]) },
	}
	cmd.Flags().StringArrayVar(&job.values, "set", nil, "a parameter of the recipe, `NAME=VALUE`; may be repeated")
	job.addFlags(cmd)
	return cmd
}

func (c *program) recipeRemove() *cobra.Command {
	job := &recipeJob{program: c}
	cmd := &cobra.Command{
		Use:   "remove NAME [flags]",
		Short: "Take a recipe out of the configuration",
		Long: `Take a recipe that "attache recipe add" has put into the user's configuration file out again,
and print the lines that are removed. An entry that the user wrote stays.`,
		Example: "  attache recipe remove git",
		Args:    oneRecipe,
		RunE:    func(_ *cobra.Command, args []string) error { return job.remove(args[0]) },
	}
	job.addFlags(cmd)
	return cmd
}

func (j *recipeJob) addFlags(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&j.dryRun, "dry-run", false, "show what would change, and change nothing")
	j.flags = config.AddFlag(cmd, config.Flags{}, "config", "FILE", config.FileHelp)
}

func oneRecipe(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("%q wants the name of one recipe: \"attache recipe list\" lists them", cmd.CommandPath())
	}
	return nil
}

// recipeNamed returns the recipe of that name. The error names the nearest.
func recipeNamed(name string) (recipes.Recipe, error) {
	var names []string
	for _, r := range recipes.All() {
		if r.Name == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	if near := cli.Nearest(name, names); near != "" {
		return recipes.Recipe{}, cli.Usagef("there is no recipe %q: did you mean %q?", name, near)
	}
	return recipes.Recipe{}, cli.Usagef("there is no recipe %q: there are %s", name, cli.Quoted(names))
}

func (j *recipeJob) add(name string) error {
	r, err := recipeNamed(name)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, text := range j.values {
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
	return j.edit(func(content []byte) ([]byte, error) { return recipes.Add(content, name, body) })
}

func (j *recipeJob) remove(name string) error {
	err := j.edit(func(content []byte) ([]byte, error) { return recipes.Remove(content, name) })
	if errors.Is(err, recipes.ErrAbsent) {
		return fmt.Errorf("the recipe %s is not in the configuration, or was not put there by \"attache recipe add\"", name)
	}
	return err
}

// edit changes the configuration file and prints the lines that differ. The new content
// has to be valid.
func (j *recipeJob) edit(change func([]byte) ([]byte, error)) error {
	path, err := config.Path(j.Process, j.flags)
	if err != nil {
		return err
	}
	var before, after []byte
	checked := func(content []byte) (_ []byte, err error) {
		before = content
		if after, err = change(content); err != nil {
			return nil, err
		}
		return after, config.Check(j.Process, path, after)
	}
	content, _, err := clientconfig.Load(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err = checked(content); err == nil && !j.dryRun {
		err = j.write(path, fresh, checked)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return j.report(path, before, after)
}

// write writes the file, or makes it.
func (j *recipeJob) write(path string, fresh bool, change func([]byte) ([]byte, error)) error {
	if fresh {
		content, err := change(nil)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		return errors.Join(err, f.Close())
	}
	_, err := clientconfig.Update(path, backupDirectory(j.Process, path), time.Now(), change)
	return err
}

// report prints the lines that were added or removed.
func (j *recipeJob) report(path string, before, after []byte) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", path)
	sign, lines, from := "+", after, before
	if len(after) < len(before) {
		sign, lines, from = "-", before, after
	}
	start := 0
	for start < len(from) && lines[start] == from[start] {
		start++
	}
	start = bytes.LastIndexByte(lines[:start], '\n') + 1
	for line := range bytes.Lines(lines[start : start+len(lines)-len(from)]) {
		fmt.Fprintf(&text, "%s%s\n", sign, bytes.TrimRight(line, "\r\n"))
	}
	if j.dryRun {
		text.WriteString("Nothing was changed: leave out --dry-run to do it.\n")
	}
	_, err := j.Stdout.Write([]byte(text.String()))
	return err
}
