package assembly

import (
	"log/slog"
	"slices"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientprocess"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/logging"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/proxy"
)

// Layers are the layers of one run, in the one place where the chain is built.
type Layers struct {
	List   []middleware.Layer
	dryRun bool // the layers decide and do not act
	// Secrets are the values that must not reach a disk or a server.
	Secrets []string
	// ours are the variables that no server gets.
	ours []string

	*State
	Caller *Authenticator
}

// Build builds the chain: trace, audit, announce, capture, rewrite, access-list,
// arguments, access, briefing, catalog. A layer that has nothing to do is left out.
func Build(p cli.Process, s *config.Settings, log *slog.Logger) (*Layers, error) {
	return new(State).Build(p, s, log)
}

// Build builds the chain around what lasts.
func (k *State) Build(p cli.Process, s *config.Settings, log *slog.Logger) (*Layers, error) {
	who, err := k.newCaller(p, s, log)
	if err != nil {
		return nil, err
	}
	l := &Layers{State: k, Caller: who, ours: ownVariables(s)}
	if who.Own.secret != "" {
		l.Secrets = append(l.Secrets, who.Own.secret)
	}
	logging.Redact(log, s, l.Secrets)
	l.List = append(l.List, k.traceLayer(s, log))
	if k.Announces {
		l.List = append(l.List, k.Announce.Layer())
	}
	if l.Capture, err = k.captureFor(p, s, who, log); err != nil {
		return nil, err
	}
	l.List = append(l.List, l.Capture.Layer())
	live := log
	log = rehearsed(s, log) // of the layers from here on, which a dry run does not let act
	if err := l.addRewrite(s, log); err != nil {
		return nil, err
	}
	a, err := l.newAccess(s, log)
	if err != nil {
		return nil, err
	}
	if a != nil && a.Lists() {
		l.List = append(l.List, a.ListLayer())
	}
	if err := l.addArguments(s, log); err != nil {
		return nil, err
	}
	if a != nil {
		l.List = append(l.List, a.Layer())
	}
	source, anonymous, err := policySource(p, s, l)
	if err != nil {
		return nil, err
	}
	logging.Redact(live, s, l.Secrets) // the token of the policies may be among them
	source = k.policySource(source, s, live)
	trusted := trustedSource(p, s, source, live)
	if source != nil || trusted != nil {
		l.List = append(l.List, k.briefingLayer(s, source, trusted, anonymous, k.turns(p, s), who.policyKey(l.Capture), log))
	}
	if l.dryRun = s.DryRun; l.dryRun {
		l.rehearse(live)
	}
	if err := l.addAudit(p, s, live); err != nil {
		return nil, err
	}
	l.List = append(l.List, k.catalog.Layer())
	return l, nil
}

// Relay returns the options of a relay with these layers.
func (l *Layers) Relay(s *config.Settings, log *slog.Logger) proxy.Options {
	return proxy.Options{
		Layers:       l.List,
		Hold:         int(s.Limits.Hold),
		InFlight:     s.Limits.InFlight,
		ForwardNoise: s.StdoutNoise == "forward",
		DryRun:       l.dryRun,
		Log:          log,
	}
}

// briefingLayer returns the layer that briefs from source, or from trusted if there
// is one, which has source in it.
func (k *State) briefingLayer(s *config.Settings, source policy.Source, trusted *trust.Source, anonymous bool, turns turns, key func(session string) string, log *slog.Logger) middleware.Layer {
	o := briefing.Options{
		Source:     source,
		Scope:      s.Policy.Scope,
		Anonymous:  anonymous,
		Turns:      turns.own,
		UserTurns:  turns.shared,
		Structured: briefing.Structured(s.Briefing.Structured),
		Wait:       s.Briefing.Wait,
		MaxBytes:   s.Briefing.MaxBytes,
		TTL:        s.Session.TTL,
		Log:        log,
	}
	if !s.Origin("briefing.channels").Default() {
		o.Response = slices.Contains(s.Briefing.Channels, "response")
		o.Instructions = slices.Contains(s.Briefing.Channels, "instructions")
	}
	useTrusted(&o, trusted)
	conn := briefing.ConnOptions{Catalog: &k.catalog, Credential: key, ClientProcess: clientprocess.Name, Log: log}
	if !s.DryRun { // in which the client is not shown what the layer makes of a list
		conn.Memory = &k.briefed
	}
	c := briefing.Compile(o).Connect(conn)
	k.briefing.Store(c)
	return c.Layer()
}

// Close ends what the session's layers keep of it, when the relay has returned.
func (k *State) Close() {
	if c := k.briefing.Load(); c != nil {
		c.Close()
	}
}

func paths(in []config.MetaPath) [][]string {
	out := make([][]string, 0, len(in))
	for _, p := range in {
		out = append(out, p)
	}
	return out
}

// Rules returns the part of the relay's options that can be replaced.
func (l *Layers) Rules() proxy.Rules {
	return proxy.Rules{Layers: l.List, DryRun: l.dryRun}
}
