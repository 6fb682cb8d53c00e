// Package auditlog verifies audit files, and prints their last records for people.
package auditlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

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
