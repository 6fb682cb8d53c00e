package auditlog

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/auditheads"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// ends are what the shared database knows of files: lines that they had at some moment.
type ends struct {
	all   []auditheads.Entry
	known map[auditheads.Entry]bool
	files map[chain.Digest]string // those that are verified, by their first lines
	lines map[uint64]chain.Digest // what they have at the numbers of all
}

// readEnds returns what is known of the files, and, of one that stands for itself and older ones,
// of every file that was written at its place.
func readEnds(ctx context.Context, store *auditheads.Store, s *chain.Snapshot, files []string) (*ends, error) {
	e := &ends{known: map[auditheads.Entry]bool{}, files: map[chain.Digest]string{}, lines: map[uint64]chain.Digest{}}
	places := map[auditheads.Place]bool{}
	if len(files) == 1 {
		places[auditheads.PlaceOf(files[0])] = true
	}
	for _, f := range s.Files {
		e.files[f.Beginning()] = f.Name
		noted, err := store.OfFile(ctx, f.Beginning())
		if err != nil {
			return e, err
		}
		e.add(noted)
		for _, n := range noted {
			if len(files) == 1 && filepath.Base(n.Path) == filepath.Base(files[0]) {
				places[n.Place] = true // a copy of what was written there
			}
		}
	}
	for place := range places {
		noted, err := store.At(ctx, place)
		if err != nil {
			return e, err
		}
		e.add(noted)
	}
	slices.SortFunc(e.all, func(a, b auditheads.Entry) int { return a.At.Compare(b.At) })
	return e, nil
}

func (e *ends) add(noted []auditheads.Entry) {
	for _, n := range noted {
		if !e.known[n] {
			e.known[n] = true
			e.all = append(e.all, n)
			e.lines[n.Seq] = chain.Digest{}
		}
	}
}

// line takes note of a line that was read.
func (e *ends) line(seq uint64, digest chain.Digest) {
	if _, known := e.lines[seq]; known {
		e.lines[seq] = digest
	}
}

// check prints which ends are missing, one of each file, and returns an error if one is. v has
// read the files and found no fault.
func (e *ends) check(out io.Writer, v *chain.Verifier) error {
	var last auditheads.Entry
	there, missing := 0, map[chain.Digest]string{}
	for _, n := range e.all {
		name, present := e.files[n.File]
		when := n.At.Format(time.RFC3339)
		switch {
		case e.lines[n.Seq] == n.Digest:
			there, last = there+1, n
		case present && n.Seq > v.Last:
			missing[n.File] = fmt.Sprintf("%s: record %d is missing, which was there at %s: the file was cut", name, n.Seq, when)
		case present:
			missing[n.File] = fmt.Sprintf("%s: record %d is another one than at %s: the file was made anew", name, n.Seq, when)
		case n.Seq >= v.First: // and else a file before these, whose last digest was given
			missing[n.File] = fmt.Sprintf("%s of %s: the file that had record %d at %s is missing", n.Path, n.Host, n.Seq, when)
		}
	}
	for _, n := range e.all { // in their order
		if text := missing[n.File]; text != "" {
			fmt.Fprintln(out, text)
			delete(missing, n.File)
			there = -1
		}
	}
	switch {
	case there < 0:
		return cli.ExitError(cli.ExitFailure)
	case there == 0:
		fmt.Fprintln(out, "the shared database knows no end of these files")
	default:
		fmt.Fprintf(out, "%s in the shared database: all are there, the last is record %d at %s\n", cli.Plural(there, "end"), last.Seq, last.At.Format(time.RFC3339))
	}
	return nil
}
