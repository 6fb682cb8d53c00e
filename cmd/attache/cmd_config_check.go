package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/policy/filesource"
)

// configCheck finds the mistakes in the configuration, and in what it points to.
// It prints them on stdout: they are what was asked for.
func (c *cli) configCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [flags]",
		Short: "Find the mistakes: file:line:column and what to do, exit status 2 if there are any",
		Example: `  attache config check
  attache config check --config ./sentry.yaml`,
		Long: `Read the configuration as attache would, with the flags and variables given, look at
the files it names, and print every mistake as file:line:column and what to do.
Exit status 2 if there are any. Warnings are told and change nothing.`,
		Args: noFile,
	}
	flags := addFlags(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		s, err := loadSettings(c.process, flags)
		if err == nil {
			err = c.checkFilesNamed(s)
		}
		for _, w := range s.Warnings {
			fmt.Fprintln(c.Stdout, "warning:", w)
		}
		c.warnOfVariables(s)
		var mistakes Problems
		switch {
		case errors.As(err, &mistakes):
			for _, m := range mistakes {
				fmt.Fprintln(c.Stdout, m)
			}
			return exitError(exitUsage)
		case err != nil:
			return err
		case s.File == "":
			fmt.Fprintln(c.Stdout, "ok: there is no configuration file, the defaults hold")
		default:
			fmt.Fprintln(c.Stdout, "ok:", s.File)
		}
		return nil
	}
	return cmd
}

// noFile refuses arguments. One that names a file is most likely the configuration.
func noFile(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		if info, err := os.Stat(args[0]); err == nil && info.Mode().IsRegular() {
			return usagef("unexpected %q: name the configuration with --config, as in \"%s --config %s\"", args[0], cmd.CommandPath(), args[0])
		}
	}
	return noArguments(cmd, args)
}

// checkFilesNamed looks at the files that the settings name. A session would go
// on without most of them and warn; here each is a mistake.
func (c *cli) checkFilesNamed(s *Settings) error {
	var all Problems
	var key Problems
	if _, _, err := apiKey(c.process, s); errors.As(err, &key) {
		all = append(all, key...)
	}
	if errors.As(c.tokenMissing(s), &key) {
		all = append(all, key...)
	}
	if s.Policy.Dir != "" {
		for _, p := range filesource.Check(s.Policy.Dir) {
			if !p.Warning {
				all.add(s.Origin(source{&s.Policy}.key()), "policy.dir: %v", p)
			}
		}
	}
	if at := s.Origin("identity.keys_file"); !at.Default() {
		if err := checkKeysFile(s); err != nil {
			all.add(at, "identity.keys_file: %v", err)
		}
	}
	all = append(all, identityProblems(s)...)
	all = append(all, auditProblems(s)...)
	if dir := directory(s.Record); dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			all.add(s.Origin("record"), "record: there is no directory %s: make it, or name another file", dir)
		}
	}
	return all.err()
}

// warnOfVariables tells of variables with attache's prefix that nothing reads.
func (c *cli) warnOfVariables(s *Settings) {
	for _, text := range c.unreadVariables(s) {
		fmt.Fprintln(c.Stdout, "warning:", text)
	}
}

// unreadVariables returns a text for each variable with attache's prefix that
// nothing reads.
func (c *cli) unreadVariables(s *Settings) []string {
	known := []string{keyVariable, tokenVariable, "ATTACHE_CONFIG", "ATTACHE_USER_ID", "ATTACHE_TENANT_ID", s.Policy.TokenEnv}
	for _, o := range options(s) {
		if o.flag != "" {
			known = append(known, o.variable())
		}
		if o.injected != "" {
			known = append(known, ownPrefix+"_"+o.injected)
		}
	}
	var texts []string
	for _, entry := range c.Env {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, ownPrefix+"_") || slices.Contains(known, name) {
			continue
		}
		what := "see \"attache --help\""
		if near := nearest(name, known); near != "" {
			what = "did you mean " + near + "?"
		}
		texts = append(texts, name+": no such variable is read: "+what)
	}
	return texts
}
