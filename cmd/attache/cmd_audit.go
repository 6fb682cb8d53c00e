package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/auditheads"
	"github.com/attache-mcp/attache/cmd/attache/internal/auditlog"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/middleware/audit/chain"
)

func (c *program) auditCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "audit",
		Short: "Check the records of calls, or print them",
		Long: `With audit.file in the configuration, attache writes a record of every call and every decision,
each with a digest of the one before it.`,
		Example: `  attache audit tail -f
  attache audit verify audit.jsonl`,
	}, c.auditVerify(), c.auditTail())
}

const auditVerifyHelp = `Read audit files and say which line was the first to be changed, dropped, added or moved.
Without FILE it checks audit.file of the configuration. With one FILE it also reads the files
that were renamed before it; give several with the oldest first.

Exit status 1 if there is such a line. Anybody who may write the file can cut off its end or write
it anew, and no chain shows that: keep the printed digest somewhere else, and
give it to --expect the next time. With store.url in the configuration the files are also
compared with the ends that attaches noted in the database; exit status 1 if one is missing, or
if the database cannot be asked. A configuration that cannot be read is a warning if FILE is
given and --config is not.`

func (c *program) auditVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [FILE...] [flags]",
		Short: "Find the first record that was changed, dropped or added",
		Long:  auditVerifyHelp,
		Example: `  attache audit verify audit.jsonl
  attache audit verify audit.jsonl --expect sha256:9f86d081...`,
		Args: cobra.ArbitraryArgs,
	}
	flags := setting.NewFlags(cmd)
	flags.Add(cmd, "expect", "DIGEST", "the digest of a record that must be there, as printed earlier")
	flags.Add(cmd, "after", "DIGEST", "the digest of the last record before these files, if older ones were removed")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		v, err := newVerifier(flags)
		if err != nil {
			return err
		}
		s, err := c.auditSettings(flags, len(files) > 0)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			if files, err = auditFile(s); err != nil {
				return err
			}
		}
		heads, noHeads := c.auditHeads(s)
		if err := auditlog.Verify(cmd.Context(), c.Stdout, v, heads, files...); err != nil || noHeads == nil {
			return err
		}
		return auditlog.NotCompared(noHeads)
	}
	return cmd
}

// auditSettings returns the configuration. If files are named and no configuration is, one that
// cannot be read is only a warning, so that the chain can be checked.
func (c *program) auditSettings(flags setting.Flags, named bool) (*config.Settings, error) {
	s, err := config.Load(c.Process, flags, nil)
	if err == nil || !named || flags.Has(setting.FileFlag) {
		return s, err
	}
	fmt.Fprintf(c.Stderr, "attache: %v\nattache: only the chain is checked: which database knows the ends of the files is in the configuration\n", err)
	return config.DefaultSettings(""), nil
}

// auditHeads returns the store of the ends of audit files, nil if the settings name no database.
func (c *program) auditHeads(s *config.Settings) (*auditheads.Store, error) {
	db, err := assembly.OpenForPerson(c.Process, s)
	if db == nil || err != nil {
		return nil, err
	}
	return auditheads.Open(db.Open(auditheads.Schema())), nil
}

func newVerifier(flags setting.Flags) (*chain.Verifier, error) {
	v := &chain.Verifier{}
	for name, to := range map[string]*chain.Digest{"expect": &v.Expect, "after": &v.After} {
		text, err := flags.Get(name)
		if err == nil && flags.Has(name) {
			*to, err = chain.ParseDigest(text) // refuses "", which may come from an unset variable
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

// auditFile returns the path of the file that the configuration names, in a slice.
func auditFile(s *config.Settings) ([]string, error) {
	if s.Audit.File == "" {
		return nil, cli.Usagef("which file? name it, or give the configuration whose audit.file it is with --config")
	}
	return []string{s.Audit.File}, nil
}

func (c *program) auditTail() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tail [FILE] [flags]",
		Short: "Print the last records in readable form; -f waits for new ones",
		Long: `Print the last records in readable form: when, who, which tool, the decision, the result,
and below them the rules that applied and the edits. Without FILE it prints audit.file
of the configuration. It checks nothing: see "attache audit verify".`,
		Example: `  attache audit tail -f
  attache audit tail -n 50 audit.jsonl`,
		Args: func(_ *cobra.Command, files []string) error {
			if len(files) > 1 {
				return cli.Usagef("%d files: give one, or none for audit.file of the configuration", len(files))
			}
			return nil
		},
	}
	flags := setting.NewFlags(cmd)
	n := cmd.Flags().UintP("lines", "n", 10, "how many records to print: the last `N`")
	follow := cmd.Flags().BoolP("follow", "f", false, "print new records until interrupted")
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		if len(files) == 0 {
			s, err := config.Load(c.Process, flags, nil)
			if err != nil {
				return err
			}
			if files, err = auditFile(s); err != nil {
				return err
			}
		}
		show := auditlog.NewPrinter(c.Stdout, term.HasColour(c.Getenv, c.Stdout), time.Local).Record
		t := &auditlog.Tailer{Path: files[0], Show: show}
		if err := t.Last(*n); err != nil || !*follow {
			return err
		}
		return t.Follow(cmd.Context())
	}
	return cmd
}
