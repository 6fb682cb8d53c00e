// Package auditlog verifies audit files, and prints their last records for people.
package auditlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/auditheads"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// Verify verifies the files with v and prints the result. It returns an error with exit status 1 for
// a fault in the chain, and if an end of a file that is in the database is missing. A single file
// stands for itself and its older files. heads is nil without a database.
func Verify(ctx context.Context, out io.Writer, v *chain.Verifier, heads *auditheads.Store, files ...string) error {
	var known *ends
	var readErr error
	if heads != nil {
		known, readErr = readEnds(ctx, heads, files)
	}
	s, missing := open(out, files...)
	if missing != nil && (heads == nil || !errors.Is(missing, fs.ErrNotExist)) {
		return missing
	}
	if s == nil {
		s = &chain.Snapshot{}
	}
	defer s.Close()
	if heads == nil {
		return verify(out, v, s)
	}
	switch {
	case missing != nil && len(known.all) == 0:
		return errors.Join(missing, readErr)
	case missing == nil:
		v.Line = known.line
		if err := verify(out, v, s); err != nil {
			return err
		}
	}
	if readErr != nil {
		return NotCompared(readErr)
	}
	return known.check(out, v, s)
}

// NotCompared returns the error for files whose chain is intact but whose ends could not be read.
func NotCompared(why error) error {
	return fmt.Errorf("the files were not compared with the ends in the shared database: %w", why)
}

// open opens the files to verify. If the single file itself is missing, it prints a message.
func open(out io.Writer, files ...string) (*chain.Snapshot, error) {
	if len(files) > 1 {
		s, err := chain.OpenFiles(files...)
		if missing, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, fs.ErrNotExist) {
			return nil, errNoFile(missing.Path)
		}
		return s, err
	}
	file := files[0]
	s, err := chain.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoFile(file)
	}
	if err == nil && s.Files[len(s.Files)-1].Name != file {
		fmt.Fprintf(out, "%s: the file itself is gone, and only older ones are there: the records it held are missing\n", file)
	}
	return s, err
}

// errNoFile returns the error for an audit file that does not exist, which need not be a mistake.
func errNoFile(path string) error {
	return noFileError{fmt.Errorf("there is no audit file %s: nothing was recorded yet, or the path is wrong: name the file", path)}
}

// A noFileError is an [fs.ErrNotExist] with another text.
type noFileError struct{ error }

// Is reports whether err is [fs.ErrNotExist].
func (noFileError) Is(err error) bool { return err == fs.ErrNotExist }

func verify(out io.Writer, v *chain.Verifier, s *chain.Snapshot) error {
	var err error
	for _, f := range s.Files {
		if err = v.File(f.Name, f); err != nil {
			break
		}
	}
	if err == nil {
		err = v.Close()
	}
	for _, r := range v.Remarks {
		fmt.Fprintln(out, r)
	}
	fault, isFault := errors.AsType[*chain.Fault](err)
	switch {
	case isFault:
		fmt.Fprintln(out, fault)
		return cli.ExitError(cli.ExitFailure)
	case err != nil:
		return err
	case v.Records == 0:
		return fmt.Errorf("%s holds no records", s.Files[0].Name)
	}
	name := filepath.Base(s.Files[len(s.Files)-1].Name)
	fmt.Fprintf(out, "%s: ok: records %d to %d in %s, none changed, dropped or added\n", name, v.First, v.Last, cli.Plural(len(s.Files), "file"))
	fmt.Fprintf(out, "last: %s\n", v.Digest)
	if v.Expect == (chain.Digest{}) && v.Line == nil { // with Line, the ends in the database are compared
		fmt.Fprintln(out, "nothing protects the last record: keep its digest elsewhere, and give it to --expect the next time")
	}
	return nil
}

// ends are the ends of files in the shared database, to compare with the files.
type ends struct {
	all   []auditheads.Entry
	known map[auditheads.Entry]bool
	lines map[uint64]chain.Digest // the digests of their lines with the numbers in all
}

// readEnds reads the ends of the files. If one file is given, which stands for itself and its older
// files, it also reads those of every file that was written at the same place. The files to compare must
// be opened after it returns, or they could lack a record whose end was stored in the meantime.
func readEnds(ctx context.Context, store *auditheads.Store, files []string) (*ends, error) {
	e := &ends{known: map[auditheads.Entry]bool{}, lines: map[uint64]chain.Digest{}}
	s, err := open(io.Discard, files...)
	if err != nil {
		s = &chain.Snapshot{} // the caller reports the error
	}
	defer s.Close()
	places := map[auditheads.Place]bool{}
	if len(files) == 1 {
		places[auditheads.PlaceOf(files[0])] = true
	}
	for _, f := range s.Files {
		entries, err := store.OfFile(ctx, f.Beginning())
		if err != nil {
			return e, err
		}
		e.add(entries)
		for _, n := range entries {
			if len(files) == 1 && filepath.Base(n.Path) == filepath.Base(files[0]) {
				places[n.Place] = true // the file is a copy of the one there
			}
		}
	}
	for place := range places {
		entries, err := store.At(ctx, place)
		if err != nil {
			return e, err
		}
		e.add(entries)
	}
	slices.SortFunc(e.all, func(a, b auditheads.Entry) int { return a.At.Compare(b.At) })
	return e, nil
}

func (e *ends) add(entries []auditheads.Entry) {
	for _, n := range entries {
		if !e.known[n] {
			e.known[n] = true
			e.all = append(e.all, n)
			e.lines[n.Seq] = chain.Digest{}
		}
	}
}

// line records the digest of a line if one of the heads is compared with it.
func (e *ends) line(seq uint64, digest chain.Digest) {
	if _, known := e.lines[seq]; known {
		e.lines[seq] = digest
	}
}

// check prints which ends are missing, one for each file, and returns an error if any is. v has read
// the files of s and found no fault.
func (e *ends) check(out io.Writer, v *chain.Verifier, s *chain.Snapshot) error {
	files := map[chain.Digest]string{} // by their first lines
	for _, f := range s.Files {
		files[f.Beginning()] = f.Name
	}
	var last auditheads.Entry
	found, missing := 0, map[chain.Digest]string{}
	for _, n := range e.all {
		name, present := files[n.File]
		when := n.At.Format(time.RFC3339)
		switch {
		case e.lines[n.Seq] == n.Digest:
			found, last = found+1, n
		case present && n.Seq > v.Last:
			missing[n.File] = fmt.Sprintf("%s: record %d is missing, which was there at %s: the file was cut", name, n.Seq, when)
		case present:
			missing[n.File] = fmt.Sprintf("%s: record %d differs from the one at %s: the file was replaced", name, n.Seq, when)
		case n.Seq >= v.First: // earlier records are in older files, whose last digest was given
			missing[n.File] = fmt.Sprintf("%s of %s: the file that had record %d at %s is missing", n.Path, n.Host, n.Seq, when)
		}
	}
	if len(missing) > 0 {
		for _, n := range e.all { // in order of time
			if text := missing[n.File]; text != "" {
				fmt.Fprintln(out, cli.Printable(text)) // the database may have any path
				delete(missing, n.File)
			}
		}
		return cli.ExitError(cli.ExitFailure)
	}
	if found == 0 {
		fmt.Fprintln(out, "the shared database knows no end of these files")
		return nil
	}
	fmt.Fprintf(out, "%s in the shared database: all are there, the last is record %d at %s\n", cli.Plural(found, "end"), last.Seq, last.At.Format(time.RFC3339))
	return nil
}
