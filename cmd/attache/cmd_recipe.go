package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/recipes"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

func (c *program) recipeCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "recipe",
		Short: "Put ready-made rules for known servers into the configuration",
		Long: `A recipe is an entry servers.NAME of the configuration: how a server is recognised, and
rules for it. These commands add it to the user's configuration file and remove it
without changing any other byte.`,
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
		Long:    "List the recipes, each with what its rules do and the parameters that \"recipe add\" needs.",
		Example: "  attache recipe list",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			for _, r := range recipes.All() {
				var needed string
				for _, p := range r.Parameters {
					needed += " --set " + p.Name + "=VALUE"
				}
				if needed != "" {
					needed = " Needs" + needed
				}
				fmt.Fprintf(c.Stdout, "%-12s %s%s\n", r.Name, r.Summary, needed)
			}
			return nil
		},
	}
}

func (c *program) recipeShow() *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Print a recipe",
		Long:              "Print a recipe as it is shipped: what it does, the parameters that it needs, and its rules.",
		Example:           "  attache recipe show git",
		Args:              oneRecipe,
		ValidArgsFunction: completeRecipe,
		RunE: func(_ *cobra.Command, args []string) error {
			r, err := recipes.Find(args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.Stdout, r.Text)
			return err
		},
	}
}

func (c *program) recipeAdd() *cobra.Command {
	var values []string
	cmd := &cobra.Command{
		Use:   "add NAME [flags]",
		Short: "Add a recipe to the configuration",
		Long: `Print the lines of a recipe and add them under servers.NAME of the user's configuration file,
which is created if there is none. attache keeps a backup of the file in its state directory.`,
		Example: `  attache recipe add git --dry-run
  attache recipe add sentry --set organization=acme`,
	}
	cmd.Flags().StringArrayVar(&values, "set", nil, "a parameter of the recipe, `NAME=VALUE`; may be repeated")
	return c.editsConfiguration(cmd, func(r recipes.Command, path, name string) error { return r.Add(path, name, values) })
}

func (c *program) recipeRemove() *cobra.Command {
	return c.editsConfiguration(&cobra.Command{
		Use:   "remove NAME [flags]",
		Short: "Remove a recipe from the configuration",
		Long: `Print the lines that "attache recipe add" has added to the user's configuration file for a
recipe, and remove them. An entry that the user wrote stays.`,
		Example: "  attache recipe remove git",
	}, recipes.Command.Remove)
}

// editsConfiguration makes cmd a command that edits the configuration file for one recipe.
func (c *program) editsConfiguration(cmd *cobra.Command, edit func(r recipes.Command, path, name string) error) *cobra.Command {
	dryRun := cmd.Flags().Bool("dry-run", false, "show what would change, and change nothing")
	flags := setting.NewFlags(cmd)
	cmd.Args, cmd.ValidArgsFunction = oneRecipe, completeRecipe
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
	return oneArgument(cmd, args, `the name of one recipe: "attache recipe list" lists them`)
}

func completeRecipe(_ *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	for _, r := range recipes.All() {
		if len(args) == 0 {
			names = append(names, cobra.CompletionWithDesc(r.Name, r.Summary))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
