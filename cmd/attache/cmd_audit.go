package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// auditCommand looks at the records of calls.
func (c *program) auditCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "audit",
		Short: "Check the records of calls, or read them as they come",
		Long: `With audit.file in the configuration, attache writes a record of every call and every decision,
each with a digest of the one before it.`,
		Example: `  attache audit tail -f
  attache audit verify audit.jsonl`,
	}, c.auditVerify(), c.auditTail())
}

const auditVerifyHelp = `Read audit files and say which line was the first to be changed, dropped, added or moved.
Without FILE it is audit.file of the configuration. One FILE stands for itself and the files
that were renamed before it; several are read as they are given, the oldest first.

Exit status 1 if there is such a line. Whoever may write the file can cut off its end, or make
all of it anew, and no chain shows that: keep the digest that is printed somewhere else, and
give it to --expect the next time.`

// auditVerify checks the chain.
func (c *program) auditVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [FILE...] [flags]",
		Short: "Find the first record that was changed, dropped or added",
		Long:  auditVerifyHelp,
		Example: `  attache audit verify audit.jsonl
  attache audit verify audit.jsonl --expect sha256:9f86d081...`,
		Args: cobra.ArbitraryArgs,
	}
	flags := config.AddFlag(cmd, config.Flags{}, "config", "FILE", config.FileHelp)
	config.AddFlag(cmd, flags, "expect", "DIGEST", "the digest of a record that must be there, as printed earlier")
	config.AddFlag(cmd, flags, "after", "DIGEST", "the digest of the last record before these files, where older ones were taken away")
	cmd.RunE = func(_ *cobra.Command, files []string) error {
		v, err := newVerifier(flags)
		if err != nil {
			return err
		}
		s, err := c.auditFiles(files, flags)
		if err != nil {
			return err
		}
		defer s.Close()
		return c.verify(v, s)
	}
	return cmd
}

func newVerifier(flags config.Flags) (*chain.Verifier, error) {
	v := &chain.Verifier{}
	for name, to := range map[string]*chain.Digest{"expect": &v.Expect, "after": &v.After} {
		text, err := flags.Get(name)
		if err == nil && flags.Has(name) {
			*to, err = chain.ParseDigest(text) // an empty one too: was it a variable that is not set?
		}
		if err == nil && text != "" && *to == (chain.Digest{}) {
			err = errors.New("no record has this digest: give one that \"attache audit verify\" printed")
		}
		if err != nil {
			return nil, cli.Usagef("--%s: %v", name, err)
		}
	}
	return v, nil
}

// auditFile returns the path of the file that files or the configuration name.
func (c *program) auditFile(files []string, flags config.Flags) (string, error) {
	if len(files) > 0 {
		return files[0], nil
	}
	s, err := config.Load(c.Process, flags, nil)
	if err != nil {
		return "", err
	}
	if s.Audit.File == "" {
		return "", cli.Usagef("which file? name it, or give the configuration whose audit.file it is with --config")
	}
	return s.Audit.File, nil
}

// auditFiles opens what is to be verified.
func (c *program) auditFiles(files []string, flags config.Flags) (*chain.Snapshot, error) {
	if len(files) > 1 {
		return chain.OpenFiles(files...)
	}
	file, err := c.auditFile(files, flags)
	if err != nil {
		return nil, err
	}
	s, err := chain.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, noAuditFile(file)
	}
	if err == nil && s.Files[len(s.Files)-1].Name != file {
		fmt.Fprintf(c.Stdout, "%s: the file itself is gone, and only older ones are there: the records it held are missing\n", file)
	}
	return s, err
}

// noAuditFile says that there is none, and that this need not be a mistake.
func noAuditFile(path string) error {
	return fmt.Errorf("there is no audit file %s: nothing was recorded so far, or it is another one: name it", path)
}

// verify prints what the verifier finds.
func (c *program) verify(v *chain.Verifier, s *chain.Snapshot) error {
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
		fmt.Fprintln(c.Stdout, r)
	}
	var fault *chain.Fault
	switch {
	case errors.As(err, &fault):
		fmt.Fprintln(c.Stdout, fault)
		return cli.ExitError(cli.ExitFailure)
	case err != nil:
		return err
	case v.Records == 0:
		return fmt.Errorf("%s holds no records", s.Files[0].Name)
	}
	name := filepath.Base(s.Files[len(s.Files)-1].Name)
	fmt.Fprintf(c.Stdout, "%s: ok: records %d to %d in %s, none changed, dropped or added\n", name, v.First, v.Last, cli.Plural(len(s.Files), "file"))
	fmt.Fprintf(c.Stdout, "last: %s\n", v.Digest)
	return nil
}
