// Package demo runs sessions between a client and a server that are both in this program, and prints every
// message before and after attache.
package demo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
)

// outputSize is larger than the output of the demo, so all of it is written after the sessions have ended. If
// the reader of a pipe exits early, as head does, that ends this process, which must not leave a temporary
// directory.
const outputSize = 1 << 20

// Run runs the script and prints its messages to w.
func Run(ctx context.Context, w io.Writer, colours bool) error {
	p := &printer{&term.Printer{Out: bufio.NewWriterSize(w, outputSize), Colours: colours}}
	p.Line(term.Plain, intro)
	for _, act := range script() {
		p.Title(act.title)
		err := p.act(ctx, act)
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return fmt.Errorf("the demo needs a directory for temporary files: %w: make room for it, or set TMPDIR", err)
		}
		if err != nil {
			return fmt.Errorf("the demo failed, which is a bug in attache, please report it: %w", err)
		}
	}
	p.Title("Your turn")
	p.Line(term.Plain, outro)
	return p.Out.Flush()
}

type printer struct{ *term.Printer }

// act runs one session and prints its exchanges.
func (p *printer) act(ctx context.Context, a act) error {
	s, err := startSession(ctx, a.teams)
	if err != nil {
		return err
	}
	for _, step := range a.steps {
		x, err := s.step(ctx, step)
		if err != nil {
			_ = s.end()
			return err
		}
		p.Line(term.Plain, "")
		if x.arrived == nil {
			p.refusal(step, x)
			continue
		}
		p.request(step, x)
		if x.received != nil {
			p.reply(step, x)
		}
	}
	return s.end()
}

func (p *printer) request(step step, x exchange) {
	p.Heading("client → server  "+describe(x.sent), x.requestVerdict())
	p.Frame(x.sent, x.arrived)
	for _, method := range x.asked {
		p.Why("first attache asked the server for " + method + " itself, as the client had not")
	}
	if !bytes.Equal(x.sent, x.arrived) {
		p.Why("filled from " + x.workspace.From + " of " + describeSource(x.workspace))
	}
	p.Why(step.request)
	p.Wrapped(term.Notice, "log: ", strings.Join(strings.Fields(x.logged), " "))
}

func (p *printer) reply(step step, x exchange) {
	p.Heading("server → client  result", x.replyVerdict())
	if bytes.Equal(x.reply, x.received) {
		p.Beginning(x.received)
	} else {
		p.Frame(x.reply, x.received)
	}
	p.Why(step.reply)
}

// refusal prints a call that attache answered itself.
func (p *printer) refusal(step step, x exchange) {
	p.Heading("client → attache  "+describe(x.sent), term.Verdict{Style: term.Bad, Text: "refused: the server never saw it"})
	p.Frame(x.sent, x.sent)
	p.Why(step.request)
	p.Heading("attache → client  result", term.Verdict{Style: term.Bad, Text: "a tool error that tells the model what to do"})
	p.Frame(x.received, x.received)
	p.Why(step.reply)
}

func describe(frame []byte) string {
	v := wire.Value{Raw: frame}
	return strings.TrimSpace(v.Get("method").Text() + " " + v.Get("params", "name").Text())
}

// describeSource names the message that a fact is from.
func describeSource(f sessionstate.Fact) string {
	if f.Source == sessionstate.InitializeMeta {
		return "initialize"
	}
	return "this call"
}

func (x exchange) requestVerdict() term.Verdict {
	if bytes.Equal(x.sent, x.arrived) {
		return untouched(x.sent)
	}
	return term.Verdict{Style: term.Good, Text: "filled: the call lacked a workspace"}
}

func (x exchange) replyVerdict() term.Verdict {
	switch {
	case bytes.Equal(x.reply, x.received):
		return untouched(x.received)
	case bytes.Contains(x.received, []byte(teams.MarkerKey)):
		return term.Verdict{Style: term.Good, Text: "delivered: a message of another agent"}
	case bytes.Contains(x.received, []byte(briefing.MarkerKey)):
		return term.Verdict{Style: term.Good, Text: "briefed: policies and objectives in front"}
	}
	return term.Verdict{Style: term.Good, Text: "changed: workspace is no longer required"}
}

func untouched(frame []byte) term.Verdict {
	return term.Verdict{Style: term.Quiet, Text: fmt.Sprintf("untouched: %d bytes identical", len(frame))}
}
