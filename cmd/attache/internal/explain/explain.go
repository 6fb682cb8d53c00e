// Package explain runs a call through the layers of a session and reports what each layer does and
// why.
package explain

import (
	"bytes"
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
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/replay"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Request holds the flags of explain that are not settings.
type Request struct {
	Tool, Arguments, Meta, Frame, Tools, Era string
	Entry                                    string // the name of an entry of servers
	Call                                     int
	JSON, Chain                              bool
}

// Check returns an error if the flags contradict each other.
func (e *Request) Check() error {
	switch {
	case e.Chain:
		return nil
	case e.Tool == "" && e.Frame == "":
		return cli.Usagef("which call? name its tool with --tool, or give a frame or a recording with --frame; \"attache explain --help\" has examples")
	case e.Tool != "" && e.Frame != "":
		return cli.Usagef("--tool and --frame are both given: give one of them")
	case e.Frame != "" && (e.Arguments != "" || e.Meta != "" || e.Era != ""):
		return cli.Usagef("--arguments, --meta and --era are for --tool: a frame contains these itself")
	case e.Era != "" && e.Era != "legacy" && e.Era != "modern":
		return cli.Usagef("--era %q: write legacy or modern", e.Era)
	case e.Call < 0:
		return cli.Usagef("--call %d: the first call is 1", e.Call)
	case e.Call > 0 && e.Tool != "":
		return cli.Usagef("--call is for recorded sessions: leave it out beside --tool")
	}
	return nil
}

// An Explainer explains calls under one configuration.
type Explainer struct {
	cli.Process
	Dashed bool     // the command line has a "--"
	Server []string // the command after it
	Request
	Settings *config.Settings
	Flags    setting.Flags
	Log      *slog.Logger
}

// Run prints the explanation. The error has exit status 1 if a call does not go on.
func (e *Explainer) Run(ctx context.Context) error {
	if e.Entry != "" {
		s, server, err := config.LoadNamed(e.Process, e.Flags, e.Entry, nil, e.Dashed)
		if err != nil {
			return err
		}
		s.Log = e.Settings.Log
		e.Server, e.Dashed, e.Settings = server, true, config.Inert(s)
		e.Settings.DryRun = s.DryRun && e.Chain
	}
	if e.Chain {
		return e.printChain()
	}
	frame, recording, err := e.input()
	if err != nil {
		return err
	}
	var calls []callReport
	if recording != nil {
		calls, err = e.recording(ctx, recording)
	} else {
		calls, err = e.frameCall(ctx, frame)
	}
	if err != nil {
		return err
	}
	if e.JSON {
		err = term.WriteJSON(e.Stdout, explanation{Version: 1, Calls: calls})
	} else {
		err = e.print(calls)
	}
	stopped := slices.ContainsFunc(calls, func(x callReport) bool { return x.Outcome != outcomeGoesOn })
	if err == nil && stopped {
		return cli.ExitError(cli.ExitFailure)
	}
	return err
}

func (e *Explainer) input() (frame []byte, recording *record.Session, err error) {
	if e.Frame == "" {
		frame, err = composeCall(e.Tool, e.Arguments, e.Meta, e.Era == "modern")
		return frame, nil, err
	}
	frame, recording, err = readInput(e.Frame, e.Stdin)
	switch {
	case err != nil:
	case recording == nil && e.Call != 0:
		err = cli.Usagef("--call is for recorded sessions: %s is one frame", e.Frame)
	case recording != nil && (e.Dashed || e.Request.Tools != ""):
		err = cli.Usagef("a recording has the server's tools itself: leave out --tools, --server and the server after \"--\"")
	}
	return frame, recording, err
}

// frameCall explains one frame in a new session.
func (e *Explainer) frameCall(ctx context.Context, frame []byte) ([]callReport, error) {
	conn, err := assembly.Single(assembly.Options{Process: e.Process, Log: e.Log}, e.Settings, assembly.ConnOptions{})
	if err != nil {
		return nil, err
	}
	o := conn.Relay()
	m := look(frame, middleware.Needs(o.Layers...).ArgumentNames)
	if m.Kind() == wire.Batch {
		return nil, cli.Usagef("the frame is an array of messages: give one of them, or a recording of the session")
	}
	tools, err := e.toolsFor(ctx, conn, m)
	if err != nil {
		return nil, err
	}
	if !m.Plain() {
		x := e.ambiguous(m, o.Layers)
		x.Schema = tools.from
		return []callReport{x}, nil
	}
	p := &probe{scrubber: e.scrubber(), layers: o.Layers, wanted: func(seen *wire.Message) bool { return bytes.Equal(seen.Frame(), m.Frame()) }}
	o.Layers = p.chain()
	shown, err := e.session(ctx, o, m, tools)
	if err != nil {
		return nil, err
	}
	if len(p.seen) == 0 {
		return nil, errors.New("no layer saw the frame, which is a bug in attache: please report it")
	}
	x := p.explain(p.seen[0])
	x.Schema = tools.from
	x.Hidden = m.MethodIs("tools/call") && !slices.Contains(shown, x.Tool)
	withConfig(&x, e.Settings)
	return []callReport{x}, nil
}

// session sends m in a session with a server that has the given tools, and returns the names of the
// tools that the client sees.
func (e *Explainer) session(ctx context.Context, o proxy.Options, m *wire.Message, tools toolList) (shown []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s := &session{tools: tools.list, name: e.Settings.Server.Name, modern: m.Meta().Get("io.modelcontextprotocol/protocolVersion").Exists()}
	startSession(ctx, o, s)
	defer s.end()
	if !m.MethodIs("initialize") {
		listed, err := s.handshake()
		if err != nil {
			return nil, endError(ctx)
		}
		shown = inspect.ToolNames(listed.Get("result", "tools").Raw)
		if err := unknownTool(m, tools, shown); err != nil {
			return nil, err
		}
	}
	if s.frame(m) != nil {
		return nil, endError(ctx)
	}
	return shown, nil
}

func endError(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("the session did not end within %s", timeout)
	}
	return errors.New("the session ended early; see what is logged above")
}

// unknownTool returns an error if m calls a tool that the server does not have and the client does not
// see.
func unknownTool(m *wire.Message, tools toolList, shown []string) error {
	name := m.Name().Text()
	if !tools.known || !m.MethodIs("tools/call") || slices.Contains(inspect.ToolNames(tools.list), name) || slices.Contains(shown, name) {
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

func (e *Explainer) toolsFor(ctx context.Context, conn *assembly.Conn, m *wire.Message) (toolList, error) {
	switch {
	case e.Dashed && len(e.Server) == 0:
		return toolList{}, cli.Usagef("nothing after \"--\": give the server's command there, or leave \"--\" out")
	case e.Request.Tools != "": // a server after "--" only selects the entries of servers
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
	return assumedTools(e.originalName(m.Name().Text()), m.Arguments(), assembly.ArgumentRules(e.Settings)), nil
}

// originalName returns the server's name of a tool. shown is its name for the client.
func (e *Explainer) originalName(shown string) string {
	for _, r := range e.Settings.Rewrite {
		if r.Rename == shown && len(r.Tools) == 1 && !strings.ContainsAny(r.Tools[0], "*?") {
			return r.Tools[0]
		}
	}
	return shown
}

// ambiguous explains a frame that parsers may read differently, which therefore passes no layer.
func (e *Explainer) ambiguous(m *wire.Message, layers []middleware.Layer) callReport {
	scrub := e.scrubber()
	x := callReport{Method: m.Method(), Tool: m.Name().Text(), Frame: scrub.json(m.Frame()), Facts: []factReport{}, Ambiguity: m.Why()}
	for _, l := range layers {
		x.Layers = append(x.Layers, layerReport{Name: l.Name})
	}
	needs := middleware.Needs(layers...)
	guarded := slices.ContainsFunc(needs.Guarded, func(g string) bool { return wire.Mentions(m.Frame(), g) })
	if !needs.Enforces && !guarded {
		x.Outcome, x.Sent = outcomeGoesOn, x.Frame
		return x
	}
	reply := wire.ErrorReply(m.ID(), m.Ambiguity().Code(), "refused: "+m.Ambiguity().String())
	x.Outcome, x.By, x.Answer, x.Text = outcomeRefused, "relay", scrub.json(reply.Frame()), scrub.text(wire.ReplyText(reply.Root()))
	return x
}

// recording explains the tools/call requests of a recorded session. It replays the session from the
// start, because calls depend on earlier messages.
func (e *Explainer) recording(ctx context.Context, session *record.Session) ([]callReport, error) {
	if err := e.useHeader(session.Header); err != nil {
		return nil, err
	}
	conn, err := assembly.Single(assembly.Options{Process: e.Process, Log: e.Log}, e.Settings, assembly.ForRecording(session))
	if err != nil {
		return nil, err
	}
	o := conn.Relay()
	o.Restart = conn.Restart()
	p := &probe{scrubber: e.scrubber(), layers: o.Layers, wanted: func(m *wire.Message) bool { return m.MethodIs("tools/call") }}
	o.Layers = p.chain()
	names := middleware.Needs(o.Layers...).ArgumentNames
	o.Watch = func(at proxy.Point, line []byte) {
		if at == proxy.ClientIn {
			p.ambiguousCalls(look(bytes.TrimRight(line, "\r\n"), names), names)
		}
	}
	if _, err := replay.Play(ctx, session, replay.Options{Proxy: o}); err != nil {
		return nil, fmt.Errorf("%s: %w", e.Frame, err)
	}
	inOrder(p.seen, session)
	var calls []callReport
	for _, t := range p.seen {
		x := p.explain(t)
		if t.ambiguity != 0 {
			x = e.ambiguous(look(t.frames[0], names), p.layers)
		}
		x.Schema = "as recorded"
		withConfig(&x, e.Settings)
		calls = append(calls, x)
	}
	return e.pick(calls)
}

// useHeader replaces the variables and flags of this process by those of a recorded session.
func (e *Explainer) useHeader(h record.Header) error {
	p := assembly.RecordedProcess(e.Process, h, e.Settings)
	s, err := config.LoadServed(p, e.Flags, h.Server)
	if err != nil {
		return err
	}
	s.Log = e.Settings.Log
	e.Process, e.Settings = p, config.Inert(s)
	return nil
}

// pick returns the call selected with --call, or all calls.
func (e *Explainer) pick(calls []callReport) ([]callReport, error) {
	switch {
	case len(calls) == 0:
		return nil, cli.Usagef("%s has no tools/call in it", e.Frame)
	case e.Call > len(calls):
		return nil, cli.Usagef("--call %d: %s has %s", e.Call, e.Frame, cli.Plural(len(calls), "call"))
	case e.Call > 0:
		return calls[e.Call-1 : e.Call], nil
	}
	return calls, nil
}

func (e *Explainer) scrubber() scrubber {
	secrets := config.Secrets(e.Process, e.Settings, nil)
	secrets.Home, secrets.Host = "", ""
	return scrubber{record.NewScrubber(secrets)}
}
