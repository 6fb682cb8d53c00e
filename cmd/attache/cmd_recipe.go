package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/recipes"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
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
			r, err := recipes.Find(args[0])
			if err != nil {
				return err
			}
			_, err = c.Stdout.Write([]byte(r.Text))
			return err
		},
	}
}

func (c *program) recipeAdd() *cobra.Command {
	var values []string
	cmd := &cobra.Command{
		Use:   "add NAME [flags]",
		Short: "Put a recipe into the configuration",
		Long: `Put a recipe under servers.NAME of the user's configuration file, which is made if there is
none. The lines that are added are printed first. A backup of the file is kept in attache's state
directory.`,
		Example: `  attache recipe add git --dry-run
  attache recipe add sentry --set organization=acme`,
	}
	cmd.Flags().StringArrayVar(&values, "set", nil, "a parameter of the recipe, `NAME=VALUE`; may be repeated")
	return c.editsConfiguration(cmd, func(r recipes.Command, path, name string) error { return r.Add(path, name, values) })
}

func (c *program) recipeRemove() *cobra.Command {
	return c.editsConfiguration(&cobra.Command{
		Use:   "remove NAME [flags]",
		Short: "Take a recipe out of the configuration",
		Long: `Take a recipe that "attache recipe add" has put into the user's configuration file out again,
after the lines that are removed were printed. An entry that the user wrote stays.`,
		Example: "  attache recipe remove git",
	}, recipes.Command.Remove)
}

// editsConfiguration gives cmd the flags of a command that edits the configuration file
// for one recipe, and has it do so.
func (c *program) editsConfiguration(cmd *cobra.Command, edit func(r recipes.Command, path, name string) error) *cobra.Command {
	cmd.Flags().SortFlags = false
	dryRun := cmd.Flags().Bool("dry-run", false, "show what would change, and change nothing")
	flags := setting.NewFlags(cmd)
	cmd.Args = oneRecipe
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		path, err := config.Path(c.Process, flags)
		if err != nil {
			return err
		}
		return edit(recipes.Command{Process: c.Process, DryRun: *dryRun}, path, args[0])
	}
	return cmd
}

func oneRecipe(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("%q wants the name of one recipe: \"attache recipe list\" lists them", cmd.CommandPath())
	}
	return nil
}
