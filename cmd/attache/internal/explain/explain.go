// Package explain runs a call through the layers of a session and reports what each of them does
// and why.
package explain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Request holds the flags of explain that are not settings.
type Request struct {
	Tool, Arguments, Meta, Frame, Tools, Era string
	Chain                                    bool
}

// Check returns an error if the flags contradict each other.
func (e *Request) Check() error {
	switch {
	case e.Chain:
		return nil
	case e.Tool == "" && e.Frame == "":
		return cli.Usagef("which call? name its tool with --tool, or give a frame with --frame; \"attache explain --help\" has examples")
	case e.Tool != "" && e.Frame != "":
		return cli.Usagef("--tool and --frame are both given: give one of them")
	case e.Frame != "" && (e.Arguments != "" || e.Meta != "" || e.Era != ""):
		return cli.Usagef("--arguments, --meta and --era are for --tool: a frame says these itself")
	case e.Era != "" && e.Era != "legacy" && e.Era != "modern":
		return cli.Usagef("--era %q: write legacy or modern", e.Era)
	}
	return nil
}

// An Explainer explains a call under one configuration.
type Explainer struct {
	cli.Process
	Dashed bool     // there was a "--"
	Server []string // the command behind it
	Request
	Settings *config.Settings
	Log      *slog.Logger
}

// Run prints the explanation. The error has the exit status.
func (e *Explainer) Run(ctx context.Context) error {
	if e.Chain {
		return e.printChain()
	}
	frame, err := e.frame()
	if err != nil {
		return err
	}
	x, err := e.explain(ctx, frame)
	if err != nil {
		return err
	}
	e.scrub(x)
	if err := e.print(x); err != nil {
		return err
	}
	if x.Outcome != outcomeGoesOn {
		return cli.ExitError(cli.ExitFailure)
	}
	return nil
}

// frame returns the frame to explain.
func (e *Explainer) frame() ([]byte, error) {
	if e.Frame != "" {
		return readFrame(e.Frame, e.Stdin)
	}
	return composeCall(e.Tool, e.Arguments, e.Meta, e.Era == "modern")
}

// explain explains a frame in a session of its own.
func (e *Explainer) explain(ctx context.Context, frame []byte) (*callReport, error) {
	conn, err := assembly.Single(assembly.Options{Process: e.Process, Log: e.Log}, e.Settings, assembly.ConnOptions{})
	if err != nil {
		return nil, err
	}
	o := conn.Relay()
	m := look(frame, middleware.Needs(o.Layers...).ArgumentNames)
	if m.Kind() == wire.Batch {
		return nil, cli.Usagef("the frame is an array of messages: give one of them")
	}
	tools, err := e.toolsFor(ctx, conn, m)
	if err != nil {
		return nil, err
	}
	if !m.Plain() {
		x := e.ambiguous(m, o)
		x.Schema = tools.from
		return x, nil
	}
	p := &probe{layers: o.Layers, frame: m.Frame()}
	o.Layers = p.chain()
	shown, err := e.session(ctx, o, m, tools)
	if err != nil {
		return nil, err
	}
	if p.trail == nil {
		return nil, errors.New("the frame came by no layer, which is a fault of attache's; please report it")
	}
	x := p.report()
	x.Schema = tools.from
	x.Hidden = m.MethodIs("tools/call") && !slices.Contains(shown, x.Tool)
	withConfig(x, e.Settings)
	return x, nil
}

// session sends m in a session with a server that has the tools, and returns the names of those
// that the client sees.
func (e *Explainer) session(ctx context.Context, o proxy.Options, m *wire.Message, tools toolList) (shown []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s := &session{tools: tools.list, name: e.Settings.Server.Name, modern: m.Meta().Get("io.modelcontextprotocol/protocolVersion").Exists()}
	startSession(ctx, o, s)
	defer s.end()
	if !m.MethodIs("initialize") {
		listed, err := s.handshake(ctx)
		if err != nil {
			return nil, err
		}
		shown = inspect.ToolNames(wire.Value{Raw: listed}.Get("result", "tools").Raw)
		if err := unknownTool(m, tools, shown); err != nil {
			return nil, err
		}
	}
	return shown, s.frame(ctx, m)
}

// unknownTool returns a warning about a call of a tool that neither the server has nor the
// client sees.
func unknownTool(m *wire.Message, tools toolList, shown []string) error {
	name := m.Name().Text()
	if !tools.known || !m.MethodIs("tools/call") {
		return nil
	}
	if slices.Contains(inspect.ToolNames(tools.list), name) || slices.Contains(shown, name) {
		return nil
	}
	if near := cli.Nearest(name, shown); near != "" {
		return cli.Usagef("unknown tool %q: did you mean %q?", name, near)
	}
	if len(shown) == 0 {
		return cli.Usagef("unknown tool %q: the server shows no tools", name)
	}
	return cli.Usagef("unknown tool %q: the server shows %s", name, cli.Quoted(shown))
}

// toolsFor returns the tools of the server that the frame m is for.
func (e *Explainer) toolsFor(ctx context.Context, conn *assembly.Conn, m *wire.Message) (toolList, error) {
	switch {
	case e.Dashed && len(e.Server) == 0:
		return toolList{}, cli.Usagef("nothing behind \"--\": give the server's command there, or leave \"--\" out")
	case e.Request.Tools != "": // a server behind "--" is then only named, for the entries of servers
		return toolsFromFile(e.Request.Tools)
	case e.Dashed:
		server := inspect.Target{Argv: e.Server, Env: conn.Environment(e.Env)}
		if config.IsURL(e.Server) {
			o, err := remoteserver.Options(e.Process, e.Settings, slog.New(slog.DiscardHandler))
			if err != nil {
				return toolList{}, err
			}
			server = inspect.Target{Remote: &o}
		}
		tools, err := toolsOfServer(ctx, server)
		if err != nil {
			fmt.Fprintln(e.Stderr, "attache:", err)
			return tools, cli.ExitError(cli.ExitNotStarted)
		}
		return tools, nil
	}
	return assumedTools(e.serversName(m.Name().Text()), m.Arguments(), e.argumentPaths()), nil
}

// serversName returns the server's name of the tool that the client sees under the name shown.
func (e *Explainer) serversName(shown string) string {
	for _, r := range e.Settings.Rewrite {
		if r.Rename == shown && len(r.Tools) == 1 && !strings.ContainsAny(r.Tools[0], "*?") {
			return r.Tools[0]
		}
	}
	return shown
}

// argumentPaths returns the arguments that rules name.
func (e *Explainer) argumentPaths() [][]string {
	var all [][]string
	for _, r := range assembly.ArgumentRules(e.Settings) {
		all = append(all, r.Argument)
	}
	return all
}

// look scans a frame as the relay does.
func look(frame []byte, names [][]string) *wire.Message {
	m := &wire.Message{}
	m.Reset(wire.Client, append(slices.Clone(frame), '\n'))
	(&wire.Scanner{ArgumentNames: names}).Look(m)
	return m
}

// ambiguous explains a frame that parsers may read differently: no layer sees it.
func (e *Explainer) ambiguous(m *wire.Message, o proxy.Options) *callReport {
	x := &callReport{Method: m.Method(), Tool: m.Name().Text(), Frame: m.Frame(), Ambiguity: m.Ambiguity().String()}
	for _, l := range o.Layers {
		x.Layers = append(x.Layers, layerReport{Name: l.Name})
	}
	needs := middleware.Needs(o.Layers...)
	guarded := slices.ContainsFunc(needs.Guarded, func(g string) bool { return wire.Mentions(m.Frame(), g) })
	if !needs.Enforces && !guarded {
		x.Outcome, x.Sent = outcomeGoesOn, x.Frame
		return x
	}
	reply := wire.ErrorReply(m.ID(), m.Ambiguity().Code(), "refused: "+x.Ambiguity)
	x.Outcome, x.By, x.Answer, x.Text = outcomeRefused, "relay", reply.Frame(), wire.ReplyText(reply.Root())
	return x
}

// scrub removes secrets from what is printed: from everything that comes from a frame. Facts
// contain no secrets.
func (e *Explainer) scrub(x *callReport) {
	secrets := config.Secrets(e.Process, e.Settings, nil)
	secrets.Home, secrets.Host = "", ""
	scrub := record.NewScrubber(secrets)
	clean := func(all ...*[]byte) {
		for _, raw := range all {
			if *raw != nil {
				*raw = scrub.Line(*raw)
			}
		}
	}
	clean(&x.Frame, &x.Sent, &x.Answer)
	x.Text = string(scrub.Line([]byte(x.Text)))
	for i := range x.Layers {
		part := &x.Layers[i]
		for _, edit := range []*editReport{part.Request, part.Reply} {
			if edit != nil {
				clean(&edit.Before, &edit.After)
			}
		}
		for j := range part.Notes {
			n := &part.Notes[j]
			for _, raw := range []*[]byte{&n.Before, &n.After} {
				if *raw != nil {
					*raw = assembly.ScrubMember(scrub, n.Path, *raw)
				}
			}
		}
	}
}
