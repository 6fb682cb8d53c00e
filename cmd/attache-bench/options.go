package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/load"
	"github.com/attache-mcp/attache/cmd/attache-bench/internal/soak"
)

// errUsage is wrapped by errors about the flags.
var errUsage = errors.New("run with -h for the flags")

type options struct {
	rounds  int
	only    string
	who     string
	attache string
	list    bool
	soak    soak.Options
	load    load.Options
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("attache-bench", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.rounds, "rounds", 5, "interleaved rounds; ratios are medians over them")
	f.StringVar(&o.only, "only", "", "measure only these `ROWS`: names as -list prints them, or patterns, separated by commas")
	f.StringVar(&o.who, "subjects", "", "measure only these `SUBJECTS`: names as -list prints them, or patterns, separated by commas")
	f.StringVar(&o.attache, "attache", "", "measure the attache at `PATH` (default: build ./cmd/attache)")
	f.BoolVar(&o.list, "list", false, "print the rows and the subjects, and measure nothing")
	f.DurationVar(&o.soak.Duration, "soak", 0, "measure nothing: use attache for this `TIME` while servers and fronts are killed, check every answer, and look for leaks")
	f.Uint64Var(&o.soak.Seed, "seed", uint64(time.Now().UnixNano()), "the `NUMBER` from which the random choices of -soak follow")
	f.DurationVar(&o.load.Duration, "load", 0, "measure only a shared database: play the sessions of -sessions for this `TIME`, then more and more of them")
	f.IntVar(&o.load.Daily, "sessions", 10000, "how many sessions a day -load plays, at their peak")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		f.SetOutput(stderr)
		f.Usage()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; %w", err, errUsage)
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is no flag, and there are no arguments; %w", f.Arg(0), errUsage)
	case o.rounds < 1:
		return o, fmt.Errorf("%d rounds cannot be run: give -rounds at least 1; %w", o.rounds, errUsage)
	}
	return o, nil
}

func (o options) plan() plan {
	return plan{
		Rounds: o.rounds, Processes: 8, Starts: 3, Warm: 50, Calls: 500, Large: 12, Messages: 20000, Window: 64,
		Budget: time.Second, Timeout: time.Minute, Quiet: 20 * time.Second, Patience: 4 * time.Minute,
	}
}

// selectParts returns the parts with only the rows that match the list, all if it is empty.
func selectParts(all []part, list string) ([]part, error) {
	var names []string
	var out []part
	for _, p := range all {
		for _, r := range p.rows {
			names = append(names, r.name)
		}
		p.rows = slices.DeleteFunc(slices.Clone(p.rows), func(r row) bool { return !matches(list, r.name) })
		if len(p.rows) > 0 {
			out = append(out, p)
		}
	}
	return out, checkList("-only", list, names)
}

// selectSubjects returns the subjects that match the list, all if it is empty.
func selectSubjects(all []subject, list string) ([]subject, error) {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	out := slices.DeleteFunc(slices.Clone(all), func(s subject) bool { return !matches(list, s.Name) })
	return out, checkList("-subjects", list, names)
}

// split returns the patterns of a list.
func split(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' })
}

// matches reports whether the name matches a pattern of the list, or the list is empty.
func matches(list, name string) bool {
	patterns := split(list)
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, _ := path.Match(p, name)
		return ok
	})
}

// checkList returns an error if a pattern of a flag's list matches none of the names.
func checkList(flag, list string, names []string) error {
	for _, p := range split(list) {
		if !slices.ContainsFunc(names, func(name string) bool { return matches(p, name) }) {
			return fmt.Errorf("%s %q names nothing: run with -list for the names; %w", flag, p, errUsage)
		}
	}
	return nil
}

func list(w io.Writer, parts []part) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "row\tunit\tagainst\twhat")
	for _, p := range parts {
		for _, r := range p.rows {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.name, r.unit, r.against(), r.what)
		}
	}
	fmt.Fprintln(t, "\nsubject\t\t\twhat")
	for _, s := range subjects("", "", "", nil) {
		fmt.Fprintf(t, "%s\t\t\t%s\n", s.Name, s.What)
	}
	return t.Flush()
}
