package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/cmd/attache/internal/remoteserver"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/wire"
)

// slowStart is the time to answer after which some clients give up. Several wait 10 s for the first reply.
const slowStart = 10 * time.Second

// modernTime is the timeout for a server in the modern era after it has answered, or timed out, in the legacy
// one.
const modernTime = 10 * time.Second

// sayWaiting is the time after which doctor prints that it is waiting for the server.
const sayWaiting = 3 * time.Second

// An era holds the answers of a server in one era of the protocol.
type era struct {
	inspect.AskResult
	reply wire.Value // to the first request
	tools []byte     // a JSON array, nil if there is none
	noise int        // the number of lines that are not JSON
	first []byte     // the first of these lines
	err   error
}

// answered reports whether the server supports the era.
func (e *era) answered() bool { return e.err == nil && e.reply.Get("result").Exists() }

// why returns why a server did not answer in an era: the error, and the last lines of its stderr.
func why(e *era) string {
	text := "it answered " + inspect.Shorten(e.reply.Raw)
	if message := e.reply.Get("error", "message").Text(); message != "" {
		text = inspect.Shorten([]byte(message))
		if e.reply.Get("error", "data", "source").Text() != "attache" {
			text = "it answered with an error: " + text
		}
	}
	if e.err != nil {
		text = e.err.Error()
	}
	if e.Exit.Status() != 0 {
		text += "; " + e.Exit.String()
	}
	if n := len(e.Tail); n > 0 {
		text += "; on stderr: " + strings.Join(e.Tail[max(0, n-3):], " / ")
	}
	return text
}

func toolCount(e *era) string {
	if e.tools == nil {
		return "no tools"
	}
	return cli.Plural(len(inspect.ToolNames(e.tools)), "tool")
}

// examineServer starts the server once for each era and reports how it answered.
func (d *Doctor) examineServer(ctx context.Context) {
	d.check = "server"
	if !d.valid {
		d.note("correct the configuration, then run doctor again", "the server was not started")
		return
	}
	conn, err := assembly.Single(assembly.Options{Process: d.Process, Log: slog.New(slog.DiscardHandler)}, d.Settings, assembly.ConnOptions{})
	if err != nil {
		d.problem("correct the setting it names", "sessions cannot start: %v", err)
		return
	}
	target, path, ok := d.target(conn)
	if !ok {
		return
	}
	waiting := time.AfterFunc(sayWaiting, func() {
		fmt.Fprintf(d.Stderr, "attache: waiting for the server to answer, for %s at most\n", inspect.Timeout+modernTime)
	})
	defer waiting.Stop()
	legacy := d.visit(ctx, target, inspect.Timeout, (*inspect.Client).Initialize, "")
	if started, ok := errors.AsType[*child.StartError](legacy.err); ok {
		d.problem("correct the server's command, or its permissions", "%v", started)
		return
	}
	if path != "" {
		d.ok("%s is there", path)
	}
	limit := inspect.Timeout
	switch {
	case legacy.answered(): // it may not answer at all in the other era
		limit = max(modernTime, 3*legacy.Took)
	case legacy.Took >= inspect.Timeout:
		limit = modernTime
	}
	modern := d.visit(ctx, target, limit, (*inspect.Client).Discover, inspect.ModernMember)
	d.eras(legacy, modern)
	if target.Remote == nil {
		d.noise(legacy, modern)
		d.ending(legacy, modern)
	}
	tools := legacy.tools
	if tools == nil {
		tools = modern.tools
	}
	if tools != nil {
		d.examineTools(tools, conn)
	}
}

// target returns the server to examine, and the path of its program. It returns false after reporting a
// problem with it.
func (d *Doctor) target(conn *assembly.Conn) (target inspect.Target, path string, ok bool) {
	if config.IsURL(d.Server) {
		o, err := remoteserver.Options(d.Process, d.Settings, slog.New(slog.DiscardHandler))
		if err != nil {
			d.problem("correct the setting it names", "%v", err)
			return target, "", false
		}
		return inspect.Target{Remote: &o}, "", true
	}
	target = inspect.Target{Argv: d.Server, Env: conn.Environment(d.Env)}
	path, err := child.Find(child.Options{Argv: target.Argv, Env: target.Env})
	if err != nil {
		d.problem("correct the server's command, or install it", "%v", err)
		return target, "", false
	}
	return target, path, true
}

// visit starts the server target, and sends it the first request of an era and then tools/list. meta is the
// member of params that the era requires.
func (d *Doctor) visit(ctx context.Context, target inspect.Target, limit time.Duration, first func(*inspect.Client) (wire.Value, error), meta string) era {
	var e era
	e.AskResult, e.err = target.Ask(ctx, limit, func(l *inspect.Client) (err error) {
		defer func() { e.noise, e.first = l.Noise, l.First }()
		if e.reply, err = first(l); err != nil {
			return err
		}
		if result := e.reply.Get("result"); !result.Exists() || !result.Get("capabilities", "tools").Exists() {
			return nil
		}
		e.tools, err = l.Pages(meta)
		return err
	})
	return e
}

func (d *Doctor) eras(legacy, modern era) {
	if !legacy.answered() && !modern.answered() {
		do := "start it by hand to see what it wants: it may need arguments, variables or a network"
		if config.IsURL(d.Server) {
			do = "check its address and what it asks for: a login (attache login) or a credential (--bearer-env, server.headers)"
			if text := why(&legacy); strings.Contains(text, "cannot be reached") || strings.HasPrefix(text, "the host ") {
				do = "check its address, the network, the proxy (HTTPS_PROXY, NO_PROXY) and the certificate"
			}
			if u, err := url.Parse(d.Server[0]); err == nil && path.Base(u.Path) == "sse" {
				do = "use its address for Streamable HTTP, often /mcp: /sse is usually that of the older HTTP+SSE, which attache does not speak"
			}
		}
		d.problem(do, "it answers in neither era: %s", why(&legacy))
		return
	}
	if legacy.answered() {
		result := legacy.reply.Get("result")
		name, version := result.Get("serverInfo", "name").Text(), result.Get("serverInfo", "version").Text()
		d.ok("in the legacy era it answers as %s with revision %s and %s, in %s", strings.TrimSpace(inspect.Shorten([]byte(name+" "+version))),
			inspect.Shorten([]byte(result.Get("protocolVersion").Text())), toolCount(&legacy), legacy.Took.Round(time.Millisecond))
	} else {
		d.note("nothing, if your clients speak 2026-07-28", "it does not answer in the legacy era: %s", why(&legacy))
	}
	versions := textsOf(modern.reply.Get("result", "supportedVersions")) // none if the server answers any request
	if modern.answered() && len(versions) > 0 {
		d.ok("in the modern era it answers with %s and %s", strings.Join(versions, ", "), toolCount(&modern))
	} else {
		d.note("nothing: clients of that era fall back to the handshake, and attache lets them", "it does not speak the modern era (2026-07-28)")
	}
	if took := max(legacy.Took, modern.Took); took > slowStart {
		d.warn("if npx or uvx fetches it, install it: clients give up after a while", "it took %s to answer", took.Round(time.Second))
	}
}

// noise reports lines on stdout that are not JSON.
func (d *Doctor) noise(eras ...era) {
	for _, e := range eras {
		if e.noise == 0 {
			continue
		}
		do := "have the server log to stderr; attache drops such lines, clients without it may break on them"
		if d.Settings.StdoutNoise == "forward" {
			do = "have the server log to stderr, or set stdout_noise: drop"
		}
		d.warn(do, "it writes lines to stdout that are not JSON: %s, the first %q", cli.Plural(e.noise, "line"), inspect.Shorten(e.first))
		return
	}
	d.ok("it writes nothing but JSON to stdout")
}

// ending reports how the server ends when its client closes the connection.
func (d *Doctor) ending(eras ...era) {
	forced := func(e era) bool { return e.Exit.Signal != 0 && e.answered() }
	leftover := func(e era) bool { return e.Exit.Leftover }
	switch {
	case slices.ContainsFunc(eras, leftover):
		d.warn("nothing: attache ends them; without it they would be left behind", "it leaves processes behind when it ends")
	case slices.ContainsFunc(eras, forced):
		d.note("nothing: attache ends it; a server should end when its stdin is closed", "it does not end by itself when its client goes away")
	}
}
