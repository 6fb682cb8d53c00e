package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/clientprocess"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/briefing"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/policy/httpsource"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/sessionstate"
)

// layers are the layers of one run, in the one place where the chain is built.
type layers struct {
	list   []middleware.Layer
	dryRun bool // the layers decide and do not act
	// secrets are the values that must not reach a disk or a server.
	secrets []string
	// ours are the variables that no server gets.
	ours []string

	*lasting
	caller *caller
}

// buildLayers builds the chain: trace, audit, announce, capture, rewrite, access-list,
// arguments, access, briefing, catalog. A layer that has nothing to do is left out.
func buildLayers(p process, s *Settings, log *slog.Logger) (*layers, error) {
	return new(lasting).build(p, s, log)
}

// build builds the chain around what lasts.
func (k *lasting) build(p process, s *Settings, log *slog.Logger) (*layers, error) {
	who, err := k.newCaller(p, s, log)
	if err != nil {
		return nil, err
	}
	l := &layers{lasting: k, caller: who, ours: ownVariables(s)}
	if who.own.secret != "" {
		l.secrets = append(l.secrets, who.own.secret)
	}
	keepFromLog(log, s, l.secrets)
	l.list = append(l.list, k.traceLayer(s, log))
	if k.announces {
		l.list = append(l.list, k.announce.Layer())
	}
	if l.capture, err = k.captureFor(p, s, who, log); err != nil {
		return nil, err
	}
	l.list = append(l.list, l.capture.Layer())
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
		l.list = append(l.list, a.ListLayer())
	}
	l.addArguments(s, log)
	if a != nil {
		l.list = append(l.list, a.Layer())
	}
	source, anonymous, err := policySource(p, s, l)
	if err != nil {
		return nil, err
	}
	keepFromLog(live, s, l.secrets) // the token of the policies may be among them
	source = k.policySource(source, s, live)
	trusted := trustedSource(p, s, source, live)
	if source != nil || trusted != nil {
		l.list = append(l.list, k.briefingLayer(s, source, trusted, anonymous, k.turns(p, s), who.policyKey(l.capture), log))
	}
	if l.dryRun = s.DryRun; l.dryRun {
		l.rehearse(live)
	}
	if err := l.addAudit(p, s, live); err != nil {
		return nil, err
	}
	l.list = append(l.list, k.catalog.Layer())
	return l, nil
}

// relay returns the options of a relay with these layers.
func (l *layers) relay(s *Settings, log *slog.Logger) proxy.Options {
	return proxy.Options{
		Layers:       l.list,
		Hold:         int(s.Limits.Hold),
		InFlight:     s.Limits.InFlight,
		ForwardNoise: s.StdoutNoise == "forward",
		DryRun:       l.dryRun,
		Log:          log,
	}
}

// briefingLayer returns the layer that briefs from source, or from trusted if there
// is one, which has source in it.
func (k *lasting) briefingLayer(s *Settings, source policy.Source, trusted *trust.Source, anonymous bool, turns turns, key func(session string) string, log *slog.Logger) middleware.Layer {
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

// close ends what the session's layers keep of it, when the relay has returned.
func (k *lasting) close() {
	if c := k.briefing.Load(); c != nil {
		c.Close()
	}
}

// policySource returns where policies come from, nil for nowhere. anonymous
// says that it answers whoever asks.
func policySource(p process, s *Settings, l *layers) (source policy.Source, anonymous bool, err error) {
	switch {
	case s.Policy.Dir != "":
		return filesource.New(s.Policy.Dir), false, nil
	case s.Policy.URL == "":
		return nil, false, nil
	}
	token := ""
	if s.Policy.TokenEnv != "" {
		if token = p.getenv(s.Policy.TokenEnv); token == "" {
			return nil, false, fmt.Errorf("policy.token_env names %s, which is not set: set it, or leave the key out to send the session's API key", s.Policy.TokenEnv)
		}
		l.secrets = append(l.secrets, token)
	}
	h, err := httpsource.New(httpsource.Options{URL: s.Policy.URL, Timeout: s.Policy.Timeout, Token: policy.Credential(token)})
	return h, token != "", err
}

func paths(in []MetaPath) [][]string {
	out := make([][]string, 0, len(in))
	for _, p := range in {
		out = append(out, p)
	}
	return out
}

// baseContext holds what is known before the first frame.
func baseContext(p process, s *Settings) *sessionstate.Context {
	c := &sessionstate.Context{}
	trust := operatorFact(s, "session.trust", s.Session.Trust)
	if from := s.Origin("session.trust"); from.Default() || from == s.Operator.origin() {
		trust.Source = sessionstate.None // the session file's comes with its principal, read afresh
	}
	c = c.With(func(c *sessionstate.Context) { c.Trust = trust })
	if s.Session.GitRoot {
		c = c.WithWorkspace(gitRoot())
	}
	c = c.WithWorkspace(hostFact(p, s.Session.HostEnv.Workspace)).
		WithSession(hostFact(p, s.Session.HostEnv.Session)).
		WithWorkspace(operatorFact(s, "session.workspace", s.Session.Workspace)).
		WithWorkspaceID(operatorFact(s, "session.workspace_id", s.Session.WorkspaceID))
	return c.WithSession(operatorFact(s, "session.id", s.Session.ID))
}

func operatorFact(s *Settings, key, value string) sessionstate.Fact {
	return sessionstate.Fact{Value: value, Source: sessionstate.Operator, From: s.Origin(key).String()}
}

// hostFact returns the first of the host's variables that is set.
func hostFact(p process, names []string) sessionstate.Fact {
	for _, name := range names {
		if v := p.getenv(name); v != "" {
			return sessionstate.Fact{Value: v, Source: sessionstate.HostEnvironment, From: name}
		}
	}
	return sessionstate.Fact{}
}

// gitRoot returns the working directory's git root. Only the file system is
// asked, never git itself: a repository must not choose what is run.
func gitRoot() sessionstate.Fact {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Lstat(filepath.Join(dir, ".git")); missing == nil {
			return sessionstate.Fact{Value: dir, Source: sessionstate.GitRoot, From: "session.git_root"}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		dir = parent
	}
	return sessionstate.Fact{}
}

// ownVariables returns the variables that go no further than this process: those
// with secrets, and the one that would have a second attache write to the first
// one's recording.
func ownVariables(s *Settings) []string {
	names := append(secretVariables(s), ownPrefix+"_RECORD")
	for _, prefix := range s.Session.EnvPrefixes {
		names = append(names, prefix+"_API_KEY")
	}
	if s.Policy.TokenEnv != "" {
		names = append(names, s.Policy.TokenEnv)
	}
	return names
}

// environment returns the server's environment: our own without our secrets,
// what the operator set for the server, and the session's context under each
// prefix. What is known of the session replaces what we inherited under the
// same name: a flag stands above a variable, a trust level is normalised, and
// the tenant of a verified key is not a variable's to say. What is not known is
// left as inherited, so that a chain of attaches loses nothing. In a dry run the
// context is left out.
func (l *layers) environment(env []string, s *Settings) []string {
	set := func(name string) bool { _, ok := s.Server.Env[name]; return ok }
	context := l.injected(env, s)
	if s.DryRun {
		context = nil
	}
	known := map[string]bool{}
	for _, entry := range context {
		known[variable(entry)] = true
	}
	out := make([]string, 0, len(env)+len(s.Server.Env)+len(context))
	for _, entry := range env {
		if name := variable(entry); !set(name) && !known[name] && !slices.Contains(l.ours, name) {
			out = append(out, entry)
		}
	}
	for name, value := range s.Server.Env {
		out = append(out, name+"="+value)
	}
	return append(out, context...)
}

// injected returns the session's context as it goes into the environment of a
// server that is started with env.
func (l *layers) injected(env []string, s *Settings) []string {
	set := func(name string) bool { _, ok := s.Server.Env[name]; return ok }
	inherited := map[string]bool{}
	for _, entry := range env {
		inherited[variable(entry)] = true
	}
	context := sessionstate.Environment(l.capture.Current(), s.Session.EnvPrefixes, set)
	return slices.DeleteFunc(context, func(entry string) bool {
		return strings.HasSuffix(entry, "=") && inherited[variable(entry)]
	})
}

// variable returns the name in an entry of an environment.
func variable(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}
