package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/login"
	"github.com/attache-mcp/attache/cmd/attache/internal/mcpclient"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/proxy/remote"
)

func (c *program) loginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "login URL [flags]",
		Short: "Log in to a remote server",
		Long: `Log in to the remote server at URL with OAuth. A browser opens the page of the server's
authorization server; without a browser, open the printed address yourself. If the browser
runs on another machine, paste the last address that it shows.

Each attache of yours then uses the login and renews it. The tokens are in a file that only
you can read, encrypted with a key in the system's key ring if there is one.

The exit status is 1 if the login did not succeed, and 2 for a mistake in flags or
configuration.`,
		Example: `  attache login https://mcp.example.com/mcp
  BROWSER=firefox attache login https://mcp.example.com/mcp`,
		Args: oneURL,
	}
	return c.withLogin(cmd, func(ctx context.Context, o login.Options) error {
		switch {
		case o.Machine:
			return cli.Usagef("server.oauth.grant is %s: attache logs in to this server by itself", config.GrantMachine)
		case o.Header.Get("Authorization") != "":
			return cli.Usagef("a credential for this server is configured, so a login would not be used: remove server.bearer_env or Authorization of server.headers, or the variable ATTACHE_BEARER_ENV or ATTACHE_HEADER_Authorization")
		}
		ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
		defer stop()
		g, err := login.Login(ctx, o, login.TerminalUI(c.Process))
		if err != nil {
			return fmt.Errorf("no login to %s: %w", o.Name, err)
		}
		fmt.Fprintf(c.Stderr, "attache: logged in to %s%s\n", o.Name, g.Describe(time.Now()))
		return nil
	})
}

func (c *program) logoutCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "logout URL [flags]",
		Short: "Delete the login to a remote server",
		Long: `Delete the login to the remote server at URL, and ask the authorization server to revoke its
tokens. The exit status is 1 if there was no login, or the authorization server did not
revoke the tokens.`,
		Example: "  attache logout https://mcp.example.com/mcp",
		Args:    oneURL,
	}
	return c.withLogin(cmd, func(ctx context.Context, o login.Options) error {
		switch deleted, err := login.Logout(ctx, o); {
		case errors.Is(err, login.ErrNoGrant):
			return fmt.Errorf("there is no login to %s", o.Name)
		case !deleted:
			return fmt.Errorf("the login to %s cannot be deleted: %w", o.Name, err)
		case err != nil:
			return fmt.Errorf("the login to %s is deleted here: %w", o.Name, err)
		}
		fmt.Fprintf(c.Stderr, "attache: logged out of %s\n", o.Name)
		return nil
	})
}

// oneURL requires one argument, the address of a remote server.
func oneURL(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("which server? give its address, as in \"%s https://mcp.example.com/mcp\"", cmd.CommandPath())
	}
	if err := remote.CheckURL(args[0]); err != nil {
		return cli.Usagef("the server's address %v", err)
	}
	return nil
}

// withLogin makes cmd call do with the options of a login to the remote server whose address is its argument.
func (c *program) withLogin(cmd *cobra.Command, do func(ctx context.Context, o login.Options) error) *cobra.Command {
	flags := setting.NewFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := config.Load(c.Process, flags, args)
		if err != nil {
			return err
		}
		o, err := remoteserver.Login(c.Process, s)
		switch {
		case err != nil:
			return err
		case o.Store.Dir == "":
			return cli.Usagef("the user's state directory is not known: set %s, or XDG_STATE_HOME", mcpclient.HomeVariable())
		}
		return do(cmd.Context(), o)
	}
	return cmd
}
