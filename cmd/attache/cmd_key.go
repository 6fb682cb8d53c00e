package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/keys"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

func (c *program) keyCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "key",
		Short: "Create, list and revoke API keys",
		Long: `An API key identifies the user of a session. Hashes of the keys are in a file that only its owner can
read: identity.keys_file of the configuration, or keys.yaml beside it. With store.url they are
in the database that several machines share. Running sessions notice changes.`,
		Example: `  attache key create --user ada --tenant acme --expires 90d
  attache key list
  attache key revoke x7k2m4qa`,
	}, c.keyCreate(), c.keyImport(), c.keyList(), c.keyRevoke())
}

// keyCreate creates a key. Only the key goes to stdout, because it is shown once and usually
// redirected to a file.
func (c *program) keyCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create [flags]",
		Short: "Make a key and print it; it is shown once, only its hash is kept",
		Long: `Make a key and print only the key to stdout. It is shown once: attache keeps its hash,
its owner and its permissions. Give it to a session in ATTACHE_API_KEY, or in a file with
--api-key-file. A key that could not be printed is revoked immediately.`,
		Example: `  attache key create --user ada --tenant acme --scope acme/platform --expires 90d
  (umask 077; attache key create --user ci --role build --permission records:read > session.key)`,
		Args: noArguments,
	}
	flags := setting.NewFlags(cmd)
	for _, f := range [][3]string{
		{"user", "NAME", "whose key it is"},
		{"tenant", "NAME", "the organisation it is used for"},
		{"email", "ADDRESS", "the owner's address"},
		{"plan", "NAME", "the tenant's plan, such as free"},
		{"scope", "SCOPE", "the policy scope of sessions with this key"},
		{"trust", "LEVEL", "direct or sandboxed; default: the configured level"},
		{"expires", "WHEN", "a span such as 90d or 12h, or a day such as 2027-01-31; default: never"},
	} {
		flags.Add(cmd, f[0], f[1], f[2])
	}
	_ = cmd.RegisterFlagCompletionFunc("trust", cobra.FixedCompletions(config.TrustLevels(), cobra.ShellCompDirectiveNoFileComp))
	var a identity.Attributes
	cmd.Flags().StringArrayVar(&a.Roles, "role", nil, "a `ROLE` of the owner; may be repeated")
	cmd.Flags().StringArrayVar(&a.Permissions, "permission", nil, "a `PERMISSION` of the owner; may be repeated")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.createKey(cmd.Context(), flags, a) }
	return cmd
}

// createKey creates a key from the flags. Its owner has the roles and permissions in a.
func (c *program) createKey(ctx context.Context, flags setting.Flags, a identity.Attributes) error {
	now := time.Now()
	var wrong setting.Problems
	get := func(name string) string {
		s, err := flags.Get(name)
		if err == nil && s == "" && flags.Has(name) && name == "expires" { // the default is a key that never expires
			err = errors.New("is empty: write a value, or leave it out; was it a variable that is not set?")
		}
		if err != nil {
			wrong.Add(setting.Origin{Name: "--" + name}, "%v", err)
		}
		return s
	}
	a.User, a.Tenant, a.Email, a.Plan, a.Scope = get("user"), get("tenant"), get("email"), get("plan"), get("scope")
	if trust := get("trust"); trust != "" {
		var err error
		if a.Trust, err = setting.OneOf(trust, config.TrustLevels()); err != nil {
			wrong.Add(setting.Origin{Name: "--trust"}, "%v", err)
		}
	}
	expiry, err := keys.ParseExpiry(get("expires"), now)
	if err != nil {
		wrong.Add(setting.Origin{Name: "--expires"}, "%v", err)
	}
	s, err := config.Load(c.Process, flags, nil)
	var place keys.Place
	if err == nil {
		place, err = keys.Find(c.Process, s)
	}
	if err := errors.Join(wrong.Err(), err); err != nil {
		return err
	}
	if a.User == "" && a.Tenant == "" && a.Email == "" && a.Scope == "" && len(a.Roles)+len(a.Permissions) == 0 {
		return cli.Usagef("a key without facts about its owner is of no use, because rules and policies read them: give --user, --tenant, --scope, --role or --permission")
	}
	return keys.Create(ctx, c.Process, place, a, s.Identity.KeyPrefix, expiry, now)
}

// withKeys makes cmd find the place of the keys and call do with it.
func (c *program) withKeys(cmd *cobra.Command, do func(ctx context.Context, place keys.Place, args []string) error) *cobra.Command {
	return c.withSettings(cmd, setting.NewFlags(cmd), func(ctx context.Context, s *config.Settings, args []string) error {
		place, err := keys.Find(c.Process, s)
		if err != nil {
			return err
		}
		return do(ctx, place, args)
	})
}

func (c *program) keyImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import [flags]",
		Short: "Copy the keys of the key file to the shared database",
		Long: `Copy the entries of identity.keys_file to the database of store.url, all of them or none. Keys
that exist there are updated from the file; revoked ones stay revoked. With store.url the
file has no other use.`,
		Example: `  attache key import
  attache key import --config ./attache.yaml`,
		Args: noArguments,
	}
	return c.withSettings(cmd, setting.NewFlags(cmd), func(ctx context.Context, s *config.Settings, _ []string) error {
		return keys.Import(ctx, c.Process, s)
	})
}

func (c *program) keyList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [flags]",
		Short: "Print the owner of each key and whether it is valid; the keys themselves are not kept",
		Long: `Print a table of the keys: the id, whether it is valid, expired or revoked, its owner, what it
permits and until when. The keys themselves are not kept, so none can be printed again.`,
		Example: `  attache key list
  attache key list --config ./attache.yaml`,
		Args: noArguments,
	}
	return c.withKeys(cmd, func(ctx context.Context, place keys.Place, _ []string) error {
		entries, err := place.List(ctx)
		switch {
		case errors.Is(err, keys.ErrNoFile):
			fmt.Fprintf(c.Stderr, "attache: there are no keys: %s is not there; make one with \"attache key create\"\n", place)
			return nil
		case err != nil:
			return err
		}
		return keys.Print(c.Stdout, entries, time.Now())
	})
}

func (c *program) keyRevoke() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke [flags] ID...",
		Short: "Revoke keys; running sessions notice within identity.cache",
		Long: `Revoke keys by their ids. Running sessions notice within identity.cache (a minute). The
entries stay, so that "attache key list" and the audit still show their owners.`,
		Example: `  attache key revoke x7k2m4qa
  attache key revoke x7k2m4qa hlovp5oz`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("which key? give its id, the middle part of the key; \"attache key list\" shows them")
			}
			return nil
		},
	}
	return c.withKeys(cmd, func(ctx context.Context, place keys.Place, args []string) error {
		for _, arg := range args {
			id := config.KeyID(arg)
			if err := place.Revoke(ctx, id, time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(c.Stderr, "attache: revoked key %s\n", id)
		}
		return nil
	})
}
