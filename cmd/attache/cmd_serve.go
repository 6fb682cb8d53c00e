package main

import (
	"context"
	"fmt"
	"net"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/serve"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

func (c *program) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   config.ServeCommand + " [flags] [-- COMMAND [ARG...] | -- URL]",
		Short: "Serve many clients over Streamable HTTP, each with its own session",
		Long: `Serve many clients over Streamable HTTP. Each session has its own process, started by the
command after "--", or its own session with the remote server at that URL; nothing of a
session reaches another. Without either, the entries of servers in the configuration that have
a command or a URL are served, each under its name as the path.

Without keys or tokens it listens only on the loopback interface.`,
		Example: `  attache serve -- npx -y @cyanheads/git-mcp-server
  attache serve --listen 127.0.0.1:9000 --config team.yaml`,
		Args: noArguments,
	}
	flags := config.AddFlags(cmd)
	for _, name := range []string{"session", "record"} { // have no effect here
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.Flags().SetInterspersed(false)
	cmd.DisableFlagsInUseLine = true
	cmd.Annotations = map[string]string{mayTakeServer: "yes"}
	return c.withSettings(cmd, flags, func(ctx context.Context, s *config.Settings, _ []string) error { return c.serve(ctx, s, flags) })
}

// serve runs the command.
func (c *program) serve(ctx context.Context, s *config.Settings, flags setting.Flags) error {
	if err := config.CheckServe(s).Err(); err != nil {
		return err
	}
	servers, err := c.servedServers(s, flags)
	if err != nil {
		return err
	}
	process, listeners, err := c.inheritedListeners()
	if err != nil {
		return err
	}
	process, sink := logging.Share(process)
	defer sink.Close()
	log := logging.New(c.Process, s, sink)
	o := serve.Options{Process: process, Settings: s, Servers: servers, Listeners: listeners, Version: ownVersion(), Log: log}
	return cli.ExitWith(serve.Run(ctx, o))
}

// servedServers returns the server after "--", or those of the configuration.
func (c *program) servedServers(s *config.Settings, flags setting.Flags) ([]serve.Server, error) {
	switch {
	case c.dashed && len(c.server) == 0:
		return nil, cli.Usagef("nothing after \"--\": give the server's command there, or leave \"--\" out to serve those of the configuration")
	case c.dashed:
		if err := c.checkCommand("attache " + config.ServeCommand); err != nil {
			return nil, err
		}
		load := func() (*config.Settings, error) { return config.Load(c.Process, flags, c.server) }
		return []serve.Server{{Path: s.Serve.Path, Command: c.server, Settings: s, Load: load}}, nil
	}
	var all []serve.Server
	var settings []*config.Settings
	for _, name := range config.ServedServers(s) {
		load := func() (*config.Settings, error) { return config.LoadEndpoint(c.Process, flags, name) }
		own, err := load()
		if err != nil {
			return nil, err
		}
		settings = append(settings, own)
		all = append(all, serve.Server{Path: "/" + name, Command: own.Server.Command, Settings: own, Load: load})
	}
	if len(all) == 0 {
		return nil, cli.Usagef("no server to serve: give its command after \"--\", as in \"attache serve -- npx -y @cyanheads/git-mcp-server\", or name one in the configuration: servers: {git: {server: {command: [npx, -y, \"@cyanheads/git-mcp-server\"]}}}")
	}
	return all, config.CheckBearer(c.Process, settings).Err()
}

// inheritedListeners returns the sockets that systemd has opened for attache (systemd.socket,
// sd_listen_fds), and the process without systemd's variables, which servers must not get.
func (c *program) inheritedListeners() (cli.Process, []net.Listener, error) {
	listeners, err := activation.Listeners()
	if err != nil {
		return c.Process, nil, fmt.Errorf("the sockets that systemd has opened cannot be used: %w", err)
	}
	for i, l := range listeners {
		if l == nil {
			return c.Process, nil, cli.Usagef("socket %d of those that systemd has opened takes no connections: write ListenStream=, not another kind, and Accept=no", i+1)
		}
	}
	p := c.Process
	p.Env = assembly.Without(p.Env, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET")
	return p, listeners, nil
}
