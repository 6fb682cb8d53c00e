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

// errUsage marks a mistake in the flags.
var errUsage = errors.New("run with -h for the flags")

type options struct {
	rounds  int
	quick   bool
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
	f.IntVar(&o.rounds, "rounds", 0, "interleaved rounds; ratios are medians over them (default 5, with -quick 1)")
	f.BoolVar(&o.quick, "quick", false, "few samples, no waiting for a quiet machine: shows that it works, not how fast")
	f.StringVar(&o.only, "only", "", "measure these `ROWS` alone: names as -list prints them or patterns, between commas")
	f.StringVar(&o.who, "subjects", "", "measure these `SUBJECTS` alone: names as -list prints them or patterns, between commas")
	f.StringVar(&o.attache, "attache", "", "measure the attache at `PATH` (default: build ./cmd/attache)")
	f.BoolVar(&o.list, "list", false, "print the rows and the subjects, measure nothing")
	f.DurationVar(&o.soak.Duration, "soak", 0, "measure nothing: use attache for this `TIME` while servers and fronts are killed, and check every answer and what is left")
	f.Uint64Var(&o.soak.Seed, "seed", uint64(time.Now().UnixNano()), "what is done at random with -soak follows from this `NUMBER`")
	f.DurationVar(&o.load.Duration, "load", 0, "measure a shared database alone: play the sessions of -sessions for this `TIME`, then more and more of them")
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
	case o.rounds < 0:
		return o, fmt.Errorf("%d rounds cannot be run: give -rounds at least 1; %w", o.rounds, errUsage)
	}
	return o, nil
}

// A plan says how much is measured. It crosses to the process that measures on
// one CPU, so its fields are exported.
type plan struct {
	Rounds    int
	Processes int // fresh ones of a subject in a round, at most
	Starts    int // start-ups in one measurement
	Warm      int // small calls before those that count
	Calls     int // small calls that count, by process
	Large     int // 4 MiB calls; more of the smaller, fewer of the larger
	Messages  int // pipelined messages by process
	Window    int // of them in flight
	Budget    time.Duration
	Timeout   time.Duration // for one process, start to end
	Quiet     time.Duration // longest wait for a quiet machine before a measurement
	Patience  time.Duration // for these waits in a round, together
}

func (o options) plan() plan {
	p := plan{
		Rounds: 5, Processes: 8, Starts: 3, Warm: 50, Calls: 500, Large: 12, Messages: 20000, Window: 64,
		Budget: time.Second, Timeout: time.Minute, Quiet: 20 * time.Second, Patience: 4 * time.Minute,
	}
	if o.quick {
		p.Rounds, p.Processes, p.Starts, p.Warm, p.Calls, p.Large, p.Messages = 1, 1, 1, 20, 200, 4, 3000
		p.Quiet = 0
	}
	if o.rounds > 0 {
		p.Rounds = o.rounds
	}
	return p
}

// samples returns how often a call of a frame of that size counts.
func (p plan) samples(size int) int {
	switch {
	case size >= 32*mib:
		return max(2, p.Large/3)
	case size >= 4*mib:
		return max(2, p.Large)
	case size >= 256*kib:
		return max(2, p.Large*4)
	}
	return p.Calls
}

// selectParts returns the parts with the rows that only names, all of them if it
// names none.
func selectParts(all []part, only string) ([]part, error) {
	chosen := selector{flag: "-only", patterns: split(only)}
	var out []part
	for _, p := range all {
		p.rows = slices.DeleteFunc(slices.Clone(p.rows), func(r row) bool { return !chosen.has(r.name) })
		if len(p.rows) > 0 {
			out = append(out, p)
		}
	}
	return out, chosen.err()
}

// selectSubjects returns the subjects that who names, all of them if it names none.
func selectSubjects(all []subject, who string) ([]subject, error) {
	chosen := selector{flag: "-subjects", patterns: split(who)}
	out := slices.DeleteFunc(slices.Clone(all), func(s subject) bool { return !chosen.has(s.Name) })
	return out, chosen.err()
}

// split returns the patterns between the commas of list.
func split(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' })
}

// A selector selects names by patterns, all of them if there are no patterns.
type selector struct {
	flag     string
	patterns []string
	matched  []string // the patterns that have selected a name
}

// has reports whether a pattern means the name.
func (s *selector) has(name string) bool {
	found := len(s.patterns) == 0
	for _, p := range s.patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			s.matched, found = append(s.matched, p), true
		}
	}
	return found
}

// err names a pattern that has selected nothing.
func (s *selector) err() error {
	for _, p := range s.patterns {
		if !slices.Contains(s.matched, p) {
			return fmt.Errorf("%s %q names nothing: run with -list for the names; %w", s.flag, p, errUsage)
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
	for _, n := range subjectNames() {
		fmt.Fprintf(t, "%s\t\t\t%s\n", n, describe(n))
	}
	return t.Flush()
}
