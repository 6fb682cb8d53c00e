package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/replay"
	"github.com/attache-mcp/attache/proxy/wire"
)

const explainHelp = `Show what would happen to a call under today's configuration: what is known of the
session and from where, each layer in order, each rule with its inputs and whether
it applied, each edit as a diff, and what the server or the model would get.

The call is given by --tool and --arguments, or as a frame in a file, or by a
recorded session, of which every tools/call is explained. Nothing is called, no
file is written, and no audit record made; a policy source is asked as a session
would ask it.

What is decided can hang on the tool's schema. Behind "--" stands a server to
start and ask for its tools; --tools is a file with a saved answer to tools/list.
Without either the tool is assumed to take every argument that a rule names.

The exit status is 0 if the call would reach the server, 1 if it would be refused
or dropped (of a recording: if any call would), 2 for a mistake in flags, files or
configuration, and 127 when the server cannot be started.`

const explainExamples = `  attache explain --workspace /src/app --tool git_status -- npx -y @cyanheads/git-mcp-server
  attache explain --tool write_file --arguments '{"path": "/etc/passwd"}'
  attache explain --frame session.jsonl --call 3
  attache explain --chain`

// explainFlags are the flags of explain that are no settings.
type explainFlags struct {
	tool, arguments, meta, frame, tools, era string
	call                                     int
	json, chain                              bool
}

// explainCommand explains what would happen to a call.
func (c *cli) explainCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:         "explain (--tool NAME | --frame FILE | --chain) [flags] [-- COMMAND [ARG...]]",
		Short:       "Show what would happen to a call: each rule, its inputs, the edit as a diff",
		Long:        explainHelp,
		Example:     explainExamples,
		Args:        noArguments,
		Annotations: map[string]string{mayTakeServer: "yes"},
	}
	var e explainFlags
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&e.tool, "tool", "", "the `NAME` of the tool that is called")
	f.StringVar(&e.arguments, "arguments", "", "its arguments, a `JSON` object")
	f.StringVar(&e.meta, "meta", "", "the request's _meta, a `JSON` object")
	f.StringVar(&e.frame, "frame", "", "a `FILE` with a frame or a recorded session; \"-\" is stdin")
	f.IntVar(&e.call, "call", 0, "explain only the `N`th tools/call of a recorded session")
	f.StringVar(&e.tools, "tools", "", "a `FILE` with a saved answer to tools/list")
	f.StringVar(&e.era, "era", "", "legacy (handshake; the default) or modern (2026-07-28) for --tool")
	f.BoolVar(&e.json, "json", false, "print JSON instead of text")
	f.BoolVar(&e.chain, "chain", false, "print the layers in order, and nothing else")
	flags := addFlags(cmd)
	for _, name := range []string{"record", "dry-run", "stdout-noise"} {
		_ = f.MarkHidden(name)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := loadSettings(c.process, flags)
		if err != nil {
			return err
		}
		if err := e.check(c.dashed); err != nil {
			return err
		}
		x := &explainer{cli: c, explainFlags: e, s: inert(s), flags: flags}
		if x.s.Server.Name == "" && len(c.server) > 0 {
			x.s.Server.Name = serverName(c.server)
		}
		if s.Origin("log.level").Default() {
			x.s.Log.Level = "warn" // what is told at info is in the explanation
		}
		x.log = newLogger(c.process, x.s, c.Stderr)
		return x.run(cmd.Context())
	}
	return cmd
}

// check finds what does not go together.
func (e *explainFlags) check(server bool) error {
	switch {
	case e.chain:
		return nil
	case e.tool == "" && e.frame == "":
		return usagef("which call? name its tool with --tool, or give a frame or a recording with --frame; \"attache explain --help\" has examples")
	case e.tool != "" && e.frame != "":
		return usagef("--tool and --frame are both given: give one of them")
	case e.frame != "" && (e.arguments != "" || e.meta != "" || e.era != ""):
		return usagef("--arguments, --meta and --era are for --tool: a frame says these itself")
	case e.era != "" && e.era != "legacy" && e.era != "modern":
		return usagef("--era %q: write legacy or modern", e.era)
	case e.tools != "" && server:
		return usagef("--tools and a server are both given: give one of them")
	case e.call < 0:
		return usagef("--call %d: the first call is 1", e.call)
	case e.call > 0 && e.tool != "":
		return usagef("--call is for recorded sessions: leave it out beside --tool")
	}
	return nil
}

// inert returns settings with which layers decide as ever and leave no trace
// outside of this process.
func inert(s *Settings) *Settings {
	copied := *s
	copied.DryRun, copied.Record = false, ""
	return &copied
}

// An explainer explains with one configuration.
type explainer struct {
	*cli
	explainFlags
	s     *Settings
	flags flagValues
	log   *slog.Logger
}

func (e *explainer) run(ctx context.Context) error {
	if e.chain {
		return e.printChain()
	}
	in, err := e.input()
	if err != nil {
		return err
	}
	var calls []explained
	if in.recording != nil {
		calls, err = e.recording(ctx, in.recording)
	} else {
		calls, err = e.frameCall(ctx, in.frame)
	}
	if err != nil {
		return err
	}
	e.scrub(calls)
	if e.json {
		err = e.printJSON(explanation{Version: 1, Calls: calls})
	} else {
		err = e.print(calls)
	}
	stopped := slices.ContainsFunc(calls, func(x explained) bool { return x.Outcome != outcomeGoesOn })
	if err == nil && stopped {
		return exitError(exitFailure)
	}
	return err
}

// input returns what is to be explained.
func (e *explainer) input() (explainInput, error) {
	if e.frame != "" {
		in, err := readInput(e.frame, e.Stdin)
		if err == nil && in.recording == nil && e.call != 0 {
			err = usagef("--call is for recorded sessions: %s is one frame", e.frame)
		}
		if err == nil && in.recording != nil && (e.dashed || e.explainFlags.tools != "") {
			err = usagef("a recording has the server's tools itself: leave out --tools and what stands behind \"--\"")
		}
		return in, err
	}
	frame, err := composeCall(e.tool, e.arguments, e.meta, e.era == "modern")
	return explainInput{frame: frame}, err
}

// frameCall explains one frame in a session of its own.
func (e *explainer) frameCall(ctx context.Context, frame []byte) ([]explained, error) {
	l, err := buildLayers(e.process, e.s, e.log)
	if err != nil {
		return nil, err
	}
	o := l.relay(e.s, e.log)
	m := look(frame, middleware.Needs(o.Layers...).ArgumentNames)
	if m.Kind() == wire.Batch {
		return nil, usagef("the frame is an array of messages: give one of them, or a recording of the session")
	}
	tools, err := e.toolsFor(ctx, l, m)
	if err != nil {
		return nil, err
	}
	if !m.Plain() {
		x := e.ambiguous(m, o)
		x.Schema = tools.from
		return []explained{x}, nil
	}
	p := &probe{layers: o.Layers, wanted: func(seen *wire.Message) bool { return bytes.Equal(seen.Frame(), m.Frame()) }}
	o.Layers = p.chain()
	shown, err := e.session(ctx, o, m, tools)
	if err != nil {
		return nil, err
	}
	if len(p.seen) == 0 {
		return nil, errors.New("the frame came by no layer, which is a fault of attache's; please report it")
	}
	x := p.explain(p.seen[0])
	x.Schema = tools.from
	x.Hidden = m.MethodIs("tools/call") && !slices.Contains(shown, x.Tool)
	withConfig(&x, e.s)
	return []explained{x}, nil
}

// session says m in a session with a server that has the tools, and returns the
// names of those that the client is shown.
func (e *explainer) session(ctx context.Context, o proxy.Options, m *wire.Message, tools explainTools) (shown []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, explainTime)
	defer cancel()
	s := &explainSession{tools: tools.list, name: e.s.Server.Name, modern: m.Meta().Get("io.modelcontextprotocol/protocolVersion").Exists()}
	startExplainSession(ctx, o, s)
	defer s.end()
	if !m.MethodIs("initialize") {
		listed, err := s.handshake(ctx)
		if err != nil {
			return nil, err
		}
		shown = toolNames(wire.Value{Raw: listed}.Get("result", "tools").Raw)
		if err := unknownTool(m, tools, shown); err != nil {
			return nil, err
		}
	}
	return shown, s.frame(ctx, m)
}

// unknownTool says that a call is of a tool that neither the server has nor the
// client is shown.
func unknownTool(m *wire.Message, tools explainTools, shown []string) error {
	name := m.Name().Text()
	if !tools.known || !m.MethodIs("tools/call") {
		return nil
	}
	if slices.Contains(toolNames(tools.list), name) || slices.Contains(shown, name) {
		return nil
	}
	if near := nearest(name, shown); near != "" {
		return usagef("unknown tool %q: did you mean %q?", name, near)
	}
	if len(shown) == 0 {
		return usagef("unknown tool %q: the server shows no tools", name)
	}
	return usagef("unknown tool %q: the server shows %s", name, quoted(shown))
}

// toolsFor returns the tools of the server that the frame m is for.
func (e *explainer) toolsFor(ctx context.Context, l *layers, m *wire.Message) (explainTools, error) {
	switch {
	case e.dashed && len(e.server) == 0:
		return explainTools{}, usagef("nothing behind \"--\": give the server's command there, or leave \"--\" out")
	case e.dashed:
		tools, err := toolsOfServer(ctx, e.server, l.environment(e.Env, e.s))
		if err != nil {
			fmt.Fprintln(e.Stderr, "attache:", err)
			return tools, exitError(exitNotStarted)
		}
		return tools, nil
	case e.explainFlags.tools != "":
		return toolsFromFile(e.explainFlags.tools)
	}
	return assumedTools(e.serversName(m.Name().Text()), m.Arguments(), e.argumentPaths()), nil
}

// serversName returns the name that a tool must have at the server to be shown by
// the name given.
func (e *explainer) serversName(shown string) string {
	for _, r := range e.s.Rewrite {
		if r.Rename == shown && len(r.Tools) == 1 && !strings.ContainsAny(r.Tools[0], "*?") {
			return r.Tools[0]
		}
	}
	return shown
}

// argumentPaths returns the arguments that rules name.
func (e *explainer) argumentPaths() [][]string {
	var all [][]string
	for _, r := range argumentRules(e.s) {
		all = append(all, r.Argument)
	}
	return all
}

// look looks at a frame as the relay does.
func look(frame []byte, names [][]string) *wire.Message {
	m := &wire.Message{}
	m.Reset(wire.Client, append(slices.Clone(frame), '\n'))
	(&wire.Scanner{ArgumentNames: names}).Look(m)
	return m
}

// ambiguous explains a frame that parsers may read differently: no layer sees it.
func (e *explainer) ambiguous(m *wire.Message, o proxy.Options) explained {
	x := explained{Method: m.Method(), Tool: m.Name().Text(), Frame: rawJSON(m.Frame()), Ambiguity: m.Ambiguity().String()}
	for _, l := range o.Layers {
		x.Layers = append(x.Layers, explainedPart{Name: l.Name})
	}
	needs := middleware.Needs(o.Layers...)
	guarded := slices.ContainsFunc(needs.Guarded, func(g string) bool { return wire.Mentions(m.Frame(), g) })
	if !needs.Enforces && !guarded {
		x.Outcome, x.Sent = outcomeGoesOn, x.Frame
		return x
	}
	reply := wire.ErrorReply(m.ID(), m.Ambiguity().Code(), "refused: "+x.Ambiguity)
	x.Outcome, x.By, x.Answer, x.Text = outcomeRefused, "relay", rawJSON(reply.Frame()), answerText(reply.Frame())
	return x
}

// recording explains the tools/call requests of a recorded session, in its
// context: the session is played from the beginning.
func (e *explainer) recording(ctx context.Context, session *record.Session) ([]explained, error) {
	if err := e.given(session.Header); err != nil {
		return nil, err
	}
	l, err := lastingOf(session).build(e.process, e.s, e.log)
	if err != nil {
		return nil, err
	}
	o := l.relay(e.s, e.log)
	p := &probe{layers: o.Layers, wanted: func(m *wire.Message) bool { return m.MethodIs("tools/call") }}
	o.Layers = p.chain()
	names := middleware.Needs(o.Layers...).ArgumentNames
	o.Watch = func(at proxy.Point, line []byte) {
		if m := look(bytes.TrimRight(line, "\r\n"), names); at == proxy.ClientIn && !m.Plain() && m.MethodIs("tools/call") {
			p.ambiguous(m)
		}
	}
	if _, err := replay.Play(ctx, session, replay.Options{Proxy: o}); err != nil {
		return nil, fmt.Errorf("%s: %w", e.frame, err)
	}
	inOrder(p.seen, session)
	var calls []explained
	for _, t := range p.seen {
		x := p.explain(t)
		if t.ambiguity != 0 {
			o.Layers = p.layers
			x = e.ambiguous(look(t.frames[0], names), o)
		}
		x.Schema = "as recorded"
		withConfig(&x, e.s)
		calls = append(calls, x)
	}
	return e.pick(calls)
}

// given takes what a recorded session was given for what this one is given.
func (e *explainer) given(h record.Header) error {
	copied := *e.cli
	copied.process = e.playing(h, e.s)
	s, err := loadSettings(copied.process, e.flags)
	if err != nil {
		return err
	}
	s.Server.Name, s.Log = e.s.Server.Name, e.s.Log
	e.cli, e.s = &copied, inert(s)
	return nil
}

// pick returns the call of --call, or all.
func (e *explainer) pick(calls []explained) ([]explained, error) {
	switch {
	case len(calls) == 0:
		return nil, usagef("%s has no tools/call in it", e.frame)
	case e.call > len(calls):
		return nil, usagef("--call %d: %s has %s", e.call, e.frame, plural(len(calls), "call"))
	case e.call > 0:
		return calls[e.call-1 : e.call], nil
	}
	return calls, nil
}

// scrub takes secrets out of what is printed.
func (e *explainer) scrub(calls []explained) {
	secrets := recordSecrets(e.process, e.s, nil)
	secrets.Home, secrets.Host = "", ""
	scrub := record.NewScrubber(secrets)
	for i := range calls {
		scrubCall(scrub, &calls[i])
	}
}

// scrubCall scrubs all that comes from a frame. Facts are none of them secrets.
func scrubCall(scrub *record.Scrubber, x *explained) {
	clean := func(raw *json.RawMessage) {
		if *raw != nil {
			*raw = scrub.Line(*raw)
		}
	}
	for _, raw := range []*json.RawMessage{&x.Frame, &x.Sent, &x.Answer} {
		clean(raw)
	}
	x.Text = string(scrub.Line([]byte(x.Text)))
	for i := range x.Layers {
		part := &x.Layers[i]
		for _, edit := range []*explainedEdit{part.Request, part.Reply} {
			if edit != nil {
				clean(&edit.Before)
				clean(&edit.After)
			}
		}
		for j := range part.Notes {
			n := &part.Notes[j]
			for _, raw := range []*json.RawMessage{&n.Before, &n.After} {
				if *raw != nil {
					*raw = scrubMember(scrub, n.Path, *raw)
				}
			}
		}
	}
}

func (e *explainer) printJSON(x any) error {
	out := bufio.NewWriter(e.Stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(x); err != nil {
		return err
	}
	return out.Flush()
}
