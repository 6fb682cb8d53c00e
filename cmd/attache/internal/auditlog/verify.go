// Package auditlog shows audit files to people: whether their records are whole, and
// the last records in readable form.
package auditlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// Open opens the files that are to be verified. One file stands for itself and the
// files that were renamed before it. A message to out says if that file is gone.
func Open(out io.Writer, files ...string) (*chain.Snapshot, error) {
	if len(files) > 1 {
		return chain.OpenFiles(files...)
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

// errNoFile returns the error for an audit file that is not there, which need not be
// a mistake.
func errNoFile(path string) error {
	return fmt.Errorf("there is no audit file %s: nothing was recorded so far, or it is another one: name it", path)
}

// Verify prints what v finds in the files. A fault in the chain is an error with exit
// status 1.
func Verify(out io.Writer, v *chain.Verifier, s *chain.Snapshot) error {
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
	var fault *chain.Fault
	switch {
	case errors.As(err, &fault):
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
	return nil
}
