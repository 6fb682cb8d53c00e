package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// demoCommand shows attache at work. It needs nothing but this program: client,
// server, policies and key are in it, and what it prints is what really passed.
func (c *cli) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show attache at work, every message before and after; no other program needed",
		Long: `Play sessions between a client and a server that are both in this program, through the same
layers as any other, and print every message before and after, what was filled, injected and
refused, and why. Nothing is read, written or connected to.`,
		Example: `  attache demo
  attache demo | less -R`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), c.Stdout, c.colours(c.Stdout))
		},
	}
}

// runDemo plays the script and writes what happens to w.
func runDemo(ctx context.Context, w io.Writer, colours bool) error {
	p := &demoPrinter{out: bufio.NewWriter(w), colours: colours, layout: demoLayout{shown: map[string]bool{}}}
	p.line(demoPlain, demoIntro)
	for _, act := range demoScript() {
		p.title(act.title)
		if err := p.act(ctx, act); err != nil {
			return fmt.Errorf("the demo went wrong, which is a fault of attache's; please report it: %w", err)
		}
	}
	p.title("Your turn")
	p.line(demoPlain, demoOutro)
	return p.out.Flush()
}

// act plays one session.
func (p *demoPrinter) act(ctx context.Context, a demoAct) error {
	s := startDemoSession(ctx)
	for _, step := range a.steps {
		x, err := s.exchange(step.frame)
		if err != nil {
			_ = s.end()
			return err
		}
		p.line(demoPlain, "")
		if x.arrived == nil {
			p.refusal(step, x)
			continue
		}
		p.request(step, x)
		if x.got != nil {
			p.reply(step, x)
		}
	}
	return s.end()
}

// request shows the client's frame.
func (p *demoPrinter) request(step demoStep, x demoExchange) {
	p.heading("client → server", demoWhat(x.sent), x.requestVerdict())
	p.frame(x.sent, x.arrived)
	for _, method := range x.asked {
		p.why("first attache asked the server for " + method + " itself, as the client had not")
	}
	if !bytes.Equal(x.sent, x.arrived) {
		p.why("filled from " + x.workspace.From + " of " + demoWhose(x.workspace))
	}
	p.why(step.request)
	p.logged(x.logged)
}

// reply shows the server's answer.
func (p *demoPrinter) reply(step demoStep, x demoExchange) {
	p.heading("server → client", "result", x.replyVerdict())
	if bytes.Equal(x.given, x.got) {
		p.beginning(x.got)
	} else {
		p.frame(x.given, x.got)
	}
	p.why(step.reply)
}

// refusal shows a call that attache answered itself.
func (p *demoPrinter) refusal(step demoStep, x demoExchange) {
	p.heading("client → attache", demoWhat(x.sent), demoVerdict{demoBad, "refused: the server never saw it"})
	p.frame(x.sent, x.sent)
	p.why(step.request)
	p.heading("attache → client", "result", demoVerdict{demoBad, "a tool error that tells the model what to do"})
	p.frame(x.got, x.got)
	p.why(step.reply)
}

// demoWhat names a frame of the client's.
func demoWhat(frame []byte) string {
	v := wire.Value{Raw: frame}
	what := v.Get("method").Text()
	if tool := v.Get("params", "name").Text(); tool != "" {
		what += " " + tool
	}
	return what
}

// demoWhose says in which message a fact stood.
func demoWhose(f sessionstate.Fact) string {
	if f.Source == sessionstate.InitializeMeta {
		return "initialize"
	}
	return "this call"
}

// A demoVerdict says what attache did to a message.
type demoVerdict struct {
	style demoStyle
	text  string
}

func (x demoExchange) requestVerdict() demoVerdict {
	if bytes.Equal(x.sent, x.arrived) {
		return demoUntouched(x.sent)
	}
	return demoVerdict{demoGood, "filled: the call lacked a workspace"}
}

func (x demoExchange) replyVerdict() demoVerdict {
	switch {
	case bytes.Equal(x.given, x.got):
		return demoUntouched(x.got)
	case x.briefed:
		return demoVerdict{demoGood, "briefed: policies and objectives in front"}
	}
	return demoVerdict{demoGood, "eased: workspace is no longer required"}
}

func demoUntouched(frame []byte) demoVerdict {
	return demoVerdict{demoQuiet, fmt.Sprintf("untouched: %d bytes identical", len(frame))}
}
