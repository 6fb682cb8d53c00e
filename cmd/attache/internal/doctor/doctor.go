package doctor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/clientconfig"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/inspect"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/proxy/record"
	"github.com/attache-mcp/attache/proxy/wire"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// A level says how bad a finding is.
type level string

const (
	levelOK      level = "ok"
	levelNote    level = "note"    // nothing is wrong, something could be better
	levelWarning level = "warning" // sessions work, perhaps not as expected
	levelProblem level = "problem" // sessions do not work as configured
)

// A finding is one thing that doctor found out.
type finding struct {
	// Check is the subject, such as "policies".
	Check string `json:"check"`
	Level level  `json:"level"`
	Text  string `json:"text"`
	// Do says what to do. Only what is well has none.
	Do string `json:"do,omitempty"`
}

// A diagnosis is all that doctor has to say, and its form for programs.
type diagnosis struct {
	Version   int             `json:"version"`
	Findings  []finding       `json:"findings"`
	Arguments []argumentGroup `json:"arguments,omitempty"`
	// Rules is the suggestion, in the form of the configuration.
	Rules string `json:"rules,omitempty"`
}

func (d *diagnosis) count(l level) (n int) {
	for _, f := range d.Findings {
		if f.Level == l {
			n++
		}
	}
	return n
}

// A Doctor looks for what is wrong.
type Doctor struct {
	cli.Process
	Server   []string // the command behind "--"
	Version  string   // as "attache version" prints it
	Settings *config.Settings
	diagnosis
	check string // the subject being looked at

	valid        bool                    // the configuration is
	principal    *sessionstate.Principal // nil if nobody is identified
	unidentified error                   // why not, nil where nobody is to be
}

// Examine looks at everything. mistakes are those of the settings.
func (d *Doctor) Examine(ctx context.Context, mistakes error) {
	d.diagnosis = diagnosis{Version: 1, Findings: []finding{}}
	d.versions()
	d.configuration(mistakes)
	if d.valid {
		d.session()
		d.keys()
		d.identity(ctx)
		d.policies(ctx)
	}
	if len(d.Server) > 0 {
		d.examineServer(ctx)
	}
	d.clients()
}

// Report prints what was found, without secrets, and returns the exit status.
func (d *Doctor) Report(asJSON bool) error {
	d.scrub()
	var err error
	if asJSON {
		enc := json.NewEncoder(d.Stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(d.diagnosis)
	} else {
		err = d.print()
	}
	if err == nil && d.count(levelProblem) > 0 {
		return cli.ExitError(cli.ExitFailure)
	}
	return err
}

// scrub takes secrets out of what is printed: a server may say them, and so may
// the error of whoever was asked.
func (d *Doctor) scrub() {
	secrets := config.Secrets(d.Process, d.Settings, nil)
	secrets.Home, secrets.Host = "", ""
	if own, err := assembly.OperatorCredential(d.Process, d.Settings); err == nil && own.Text != nil {
		if text, err := own.Text(); err == nil {
			secrets.Values = append(secrets.Values, text)
		}
	}
	scrubber := record.NewScrubber(secrets)
	clean := func(text *string) { *text = string(scrubber.Line([]byte(*text))) }
	for i := range d.Findings {
		clean(&d.Findings[i].Text)
		clean(&d.Findings[i].Do)
	}
}

// ok, note, warn and problem add a finding to the subject being looked at. All but
// ok say what to do.
func (d *Doctor) ok(format string, args ...any) { d.add(levelOK, "", format, args...) }

func (d *Doctor) note(do, format string, args ...any) { d.add(levelNote, do, format, args...) }

func (d *Doctor) warn(do, format string, args ...any) { d.add(levelWarning, do, format, args...) }

func (d *Doctor) problem(do, format string, args ...any) { d.add(levelProblem, do, format, args...) }

func (d *Doctor) add(l level, do, format string, args ...any) {
	text := cli.Elided(strings.TrimSpace(fmt.Sprintf(format, args...)))
	d.Findings = append(d.Findings, finding{d.check, l, text, cli.Elided(do)})
}

// versions says what is running.
func (d *Doctor) versions() {
	d.check = "version"
	words := strings.Fields(d.Version)
	at := slices.Index(words, "go")
	d.ok("attache %s, %s, %s/%s", words[1], words[at+1], runtime.GOOS, runtime.GOARCH)
}

// clients looks for attache in the configuration files of clients: the user's, and
// those of the project in the working directory.
func (d *Doctor) clients() {
	d.check = "clients"
	here, _ := os.Getwd()
	found := false
	for _, f := range clientconfig.ThisSystem(d.Getenv).Files(here) {
		found = d.clientFile(f) || found
	}
	if !found {
		d.note("add a server in your client, then \"attache wrap --all\"; or name a file with \"attache wrap --file\"",
			"no configuration file of a client has servers in it")
	}
}

// clientFile looks at one file, and reports whether it has servers or should have.
func (d *Doctor) clientFile(f clientconfig.File) bool {
	doc, err := clientconfig.Open(f)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		d.warn("correct the file; the client may not read it either", "%s: %s: %v", f.Client.Title, f.Path, err)
		return true
	case len(doc.Entries) == 0:
		return false
	}
	for _, text := range doc.Warnings {
		d.warn("correct the file", "%s: %s: %s", f.Client.Title, f.Path, text)
	}
	var with, without []string
	remote := 0
	for _, e := range doc.Entries {
		_, wrapped := e.Wrapped(clientconfig.Launch{})
		switch {
		case e.Remote:
			remote++
		case wrapped && e.Odd == "" && e.Broken(clientconfig.Launch{}):
			d.problem("put \"--\" and the server's command behind attache's flags", "%s: %s, line %d: the entry %q starts attache without a server", f.Client.Title, f.Path, e.Line, e.Name)
		case wrapped:
			with = append(with, e.Name)
			d.attacheOf(f, e)
		case e.Odd == "":
			without = append(without, e.Name)
		}
	}
	text := f.Client.Title + ": " + f.Path + ": attache is in front of " + namesText(with)
	if remote > 0 {
		text += "; " + cli.Plural(remote, "remote server") + ", which attache does not stand in front of"
	}
	if len(without) == 0 {
		d.ok("%s", text)
		return true
	}
	d.note("attache wrap --file \""+f.Path+"\", with --dry-run first to see what would change", "%s; not of %s", text, namesText(without))
	return true
}

// attacheOf tells of an entry whose attache is not there any more.
func (d *Doctor) attacheOf(f clientconfig.File, e *clientconfig.Entry) {
	if !filepath.IsAbs(e.Command) {
		return
	}
	if _, err := os.Stat(e.Command); errors.Is(err, fs.ErrNotExist) {
		d.problem("attache wrap --repair --file \""+f.Path+"\"",
			"%s: %s, line %d: the server %q starts %s, which is not there", f.Client.Title, f.Path, e.Line, e.Name, e.Command)
	}
}

// configuration tells of mistakes in the settings and in the files they name.
func (d *Doctor) configuration(mistakes error) {
	d.check = "configuration"
	d.valid = mistakes == nil
	if d.valid {
		mistakes = config.CheckFiles(d.Process, d.Settings)
	}
	var all config.Problems
	errors.As(mistakes, &all)
	for _, p := range all {
		d.problem(`correct it there; "attache config check" tells when all is well`, "%v", p)
	}
	for _, w := range d.Settings.Warnings {
		d.warn(`correct it there; "attache config check" tells when all is well`, "%v", w)
	}
	for _, text := range config.UnknownVariables(d.Process, d.Settings) {
		d.warn("correct its name, or do not set it", "%s", text)
	}
	switch {
	case !d.valid:
		d.note("correct the configuration, then run doctor again", "the session, keys and policies were not looked at")
	case d.Settings.File == "":
		d.ok("there is no configuration file: the defaults hold")
	default:
		d.ok("%s is read", d.Settings.File)
	}
}

// session says what is known of a session before its first message.
func (d *Doctor) session() {
	d.check = "session"
	base := assembly.BaseContext(d.Process, d.Settings)
	path, _ := base.Lookup("session.workspace.path")
	if path.Empty() {
		d.note("nothing, if your client says it (roots, _meta); or give --workspace, or set session.git_root: true",
			"no workspace is known before the client says one")
	} else if info, err := os.Stat(path.Value); !strings.Contains(path.Value, "://") && (err != nil || !info.IsDir()) {
		d.warn("make the directory, or correct where it comes from", "the workspace %s (from %s) is no directory", path.Value, path.From)
	} else {
		d.ok("the workspace is %s (from %s)", path.Value, path.From)
	}
}

// keys looks at the key file: whether it is closed to others, and what is in it.
func (d *Doctor) keys() {
	d.check = "keys"
	path := d.Settings.Identity.KeysFile
	if path == "" {
		d.ok("no key file is configured")
		return
	}
	entries, err := identity.List(path)
	switch _, missing := os.Stat(path); {
	case errors.Is(missing, fs.ErrNotExist) && d.Settings.Origin("identity.keys_file").Default():
		d.ok("there is no key file: no API keys are accepted")
		return
	case err != nil && !d.Settings.Origin("identity.keys_file").Default():
		return // told with the configuration
	case err != nil:
		d.problem("correct the file; until then its keys identify nobody", "%v", err)
		return
	}
	good, now := 0, time.Now()
	for _, e := range entries {
		if e.Revoked.IsZero() && (e.Expires.IsZero() || now.Before(e.Expires)) {
			good++
		}
	}
	d.ok("%s is closed to others; %s, of which %d hold", path, cli.Plural(len(entries), "key"), good)
}

// identity says who a session would act for, and how far it is trusted.
func (d *Doctor) identity(ctx context.Context) {
	d.check = "identity"
	who, err := assembly.NewAuthenticator(d.Process, d.Settings, assembly.KeyWarnings{})
	if err != nil {
		d.problem("correct the setting it names", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, identityTime)
	defer cancel()
	p, err := who.Identify(ctx, capture.Credential{})
	if err != nil {
		d.refused(who, err)
	}
	d.principal, d.unidentified = p, err
	switch {
	case p != nil:
		d.ok("sessions act for %s", principalText(p))
	case err != nil:
	case len(who.Accept) > 0:
		d.ok("nobody is identified until a client brings a credential in _meta")
	default:
		d.note("nothing, if no rule asks who calls; or give a key in ATTACHE_API_KEY", "nobody is identified")
	}
	trust, _ := d.identified(assembly.BaseContext(d.Process, d.Settings)).Lookup("session.trust")
	d.ok("the trust is %s %s", trust.Value, term.Provenance(trust.Source.String(), trust.From))
}

// identified returns ctx as that of a session which was identified as doctor was.
func (d *Doctor) identified(ctx *sessionstate.Context) *sessionstate.Context {
	return ctx.With(func(ctx *sessionstate.Context) { ctx.Principal, ctx.Unidentified = d.principal, d.unidentified })
}

// refused tells why nobody is identified: for the session file, which is read first,
// or for the credential.
func (d *Doctor) refused(who *assembly.Authenticator, err error) {
	if _, fault := who.Asserted(); fault != nil || who.Own.Text == nil {
		d.problem("correct the session file, or do not name it", "nobody is identified: %v", err)
		return
	}
	do := `give a key that holds; "attache key list" shows them`
	if text, fault := who.Own.Text(); fault != nil || identity.LooksLikeToken(text) {
		do = "give a token that holds, or correct identity.jwt"
	}
	d.problem(do, "the credential from %s identifies nobody: %v", who.Own.From, err)
}

// policies asks the policy source what it has for the principal.
func (d *Doctor) policies(ctx context.Context) {
	d.check = "policies"
	d.workspacePolicies()
	if d.Settings.Policy.Dir == "" && d.Settings.Policy.URL == "" {
		d.ok("no policy source is configured")
		return
	}
	if d.Settings.Policy.Dir != "" {
		for _, p := range filesource.Check(d.Settings.Policy.Dir) {
			if !p.Warning {
				return // told with the configuration
			}
			d.warn("correct the file", "%v", p)
		}
	}
	source, err := assembly.ConfiguredSource(d.Process, d.Settings)
	if err != nil {
		return // as above: a token that is not there
	}
	q, err := assembly.PolicyQuery(ctx, d.Process, d.Settings)
	if err != nil {
		return // told with the identity
	}
	e, err := source.Effective(ctx, q)
	if err != nil {
		d.problem(d.sourceRemedy(q, err), "%s does not answer with policies: %v", d.sourceName(), err)
		return
	}
	if e.Empty() {
		d.warn("write one, or correct policy.scope", "%s has no policies for the scope %q", d.sourceName(), q.Scope)
		return
	}
	d.ok("%s has %s for the scope %q; \"attache policy show\" prints the text", d.sourceName(), contents(e), q.Scope)
}

// workspacePolicies says whether the workspace has policies of its own, and whether
// they are trusted.
func (d *Doctor) workspacePolicies() {
	path := assembly.BaseContext(d.Process, d.Settings).Workspace.Value
	if path == "" || strings.Contains(path, "://") {
		return
	}
	workspace, real, err := trust.Resolve(path)
	if err != nil {
		return // told with the session
	}
	text, err := trust.Read(real)
	store := assembly.TrustStore(d.Process)
	r, known := store.Find(workspace)
	do := `look at them with "attache trust --show PATH"; "attache trust PATH" uses them`
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		d.warn("correct the file, or take it out", "the workspace's own policies (%s) cannot be read: %v", trust.File, cli.Reason(err))
	case !known:
		d.note(do, "the workspace has policies of its own (%s), which are not trusted and not used", trust.File)
	case r.Digest != policy.Digest(string(text)):
		d.warn(do, "the workspace's own policies (%s) have changed since they were trusted, and are not used", trust.File)
	default:
		d.ok("the workspace's own policies (%s) are trusted", trust.File)
	}
}

// sourceName names the policy source without what an address may hold of secrets.
func (d *Doctor) sourceName() string {
	if d.Settings.Policy.Dir != "" {
		return d.Settings.Policy.Dir
	}
	return config.ShownAddress(d.Settings.Policy.URL)
}

// sourceRemedy says what to do about an error of the policy source.
func (d *Doctor) sourceRemedy(q policy.Query, err error) string {
	switch {
	case errors.Is(err, policy.ErrUnknownScope) && q.Scope == "":
		return "give a scope by the key's principal, --scope or policy.scope"
	case errors.Is(err, policy.ErrUnknownScope):
		return "correct the scope of the key, --scope or policy.scope"
	case errors.Is(err, policy.ErrUnauthorized):
		return "give a key it knows in ATTACHE_API_KEY, or its token by policy.token_env"
	case errors.Is(err, policy.ErrInvalid):
		return `correct what it holds; "attache policy check" tells where`
	}
	return "see that it runs and can be reached from here; sessions go on without policies until then"
}

// print prints the diagnosis for people.
func (d *Doctor) print() error {
	p := &term.Printer{Out: bufio.NewWriter(d.Stdout), Colours: term.HasColour(d.Getenv, d.Stdout)}
	check := ""
	for _, f := range d.Findings {
		if f.Check != check {
			check = f.Check
			p.Line(term.Heading, check)
		}
		style := map[level]term.Style{levelOK: term.Good, levelNote: term.Quiet, levelWarning: term.Notice, levelProblem: term.Bad}[f.Level]
		p.Hanging(mark(f.Level), f.Text, style)
		if f.Do != "" {
			p.Hanging("           do: ", f.Do, term.Reason)
		}
	}
	if d.Rules != "" {
		p.Line(term.Heading, "rules to paste into the configuration, once you have looked at them")
		for line := range strings.Lines(d.Rules) {
			p.Line(term.Plain, "  "+strings.TrimSuffix(line, "\n"))
		}
	}
	p.Line(term.Plain, "")
	p.Line(term.Heading, cli.Plural(d.count(levelProblem), "problem")+", "+cli.Plural(d.count(levelWarning), "warning")+", "+cli.Plural(d.count(levelNote), "note"))
	return p.Out.Flush()
}

// examineServer starts the server once for each era and says what came of it.
func (d *Doctor) examineServer(ctx context.Context) {
	d.check = "server"
	if !d.valid {
		d.note("correct the configuration, then run doctor again", "the server was not started")
		return
	}
	conn, err := assembly.Single(assembly.Options{Process: d.Process, Log: slog.New(slog.DiscardHandler)}, d.Settings, assembly.ConnOptions{})
	if err != nil {
		d.problem("correct the setting it names", "sessions do not begin: %v", err)
		return
	}
	env := conn.Environment(d.Env)
	path, err := child.Find(child.Options{Argv: d.Server, Env: env})
	if err != nil {
		d.problem("correct the command behind \"--\", or install it", "%v", err)
		return
	}
	waiting := time.AfterFunc(sayWaiting, func() {
		fmt.Fprintf(d.Stderr, "attache: waiting for the server to answer, for %s at most\n", inspect.Timeout+modernTime)
	})
	defer waiting.Stop()
	legacy := d.visit(ctx, inspect.Visit{Argv: d.Server, Env: env, Within: inspect.Timeout}, (*inspect.Client).Initialize, "")
	var started *child.StartError
	if errors.As(legacy.err, &started) {
		d.problem("correct the command behind \"--\", or its permissions", "%v", started)
		return
	}
	d.ok("%s is there", path)
	within := inspect.Timeout
	switch {
	case legacy.answered(): // and may keep silent in the other era
		within = max(modernTime, 3*legacy.Took)
	case legacy.Took >= inspect.Timeout:
		within = modernTime
	}
	modern := d.visit(ctx, inspect.Visit{Argv: d.Server, Env: env, Within: within}, (*inspect.Client).Discover, inspect.ModernMember)
	d.eras(legacy, modern)
	d.noise(legacy, modern)
	d.ending(legacy, modern)
	tools := legacy.tools
	if tools == nil {
		tools = modern.tools
	}
	if tools != nil {
		d.examineTools(tools, conn)
	}
}

// visit starts the server, as v says, and asks it the first question of an era, and
// then for its tools. meta is the member of params that the era wants.
func (d *Doctor) visit(ctx context.Context, v inspect.Visit, first func(*inspect.Client) (wire.Value, error), meta string) era {
	var e era
	e.Visited, e.err = v.Ask(ctx, func(l *inspect.Client) (err error) {
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

// eras says in which eras the server answers.
func (d *Doctor) eras(legacy, modern era) {
	if !legacy.answered() && !modern.answered() {
		d.problem("start it by hand to see what it wants: it may need arguments, variables or a network", "it answers in neither era: %s", why(&legacy))
		return
	}
	if legacy.answered() {
		result := legacy.reply.Get("result")
		d.ok("in the legacy era it answers as %s with revision %s and %s, in %s", serverText(result.Get("serverInfo")),
			inspect.Shorten([]byte(result.Get("protocolVersion").Text())), toolCount(&legacy), legacy.Took.Round(time.Millisecond))
	} else {
		d.note("nothing, if your clients speak 2026-07-28", "it does not answer in the legacy era: %s", why(&legacy))
	}
	var versions []string // none from a server that answers whatever it is asked
	for v := range modern.reply.Get("result", "supportedVersions").Elements() {
		versions = append(versions, v.Text())
	}
	if modern.answered() && len(versions) > 0 {
		d.ok("in the modern era it answers with %s and %s", strings.Join(versions, ", "), toolCount(&modern))
	} else {
		d.note("nothing: clients of that era fall back to the handshake, and attache lets them", "it does not speak the modern era (2026-07-28)")
	}
	if took := max(legacy.Took, modern.Took); took > slowStart {
		d.warn("install it instead of having npx or uvx fetch it, as clients give up after a while", "it took %s to answer", took.Round(time.Second))
	}
}

// noise tells of what is no JSON on stdout.
func (d *Doctor) noise(eras ...era) {
	for _, e := range eras {
		if e.noise == 0 {
			continue
		}
		do := "have the server log to stderr; attache drops such lines, clients without it may break on them"
		if d.Settings.StdoutNoise == "forward" {
			do = "have the server log to stderr, or set stdout_noise: drop"
		}
		d.warn(do, "it writes to stdout what is not JSON: %s, the first %q", cli.Plural(e.noise, "line"), inspect.Shorten(e.first))
		return
	}
	d.ok("it writes nothing but JSON to stdout")
}

// ending tells how the server ends when its client goes away.
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

// examineTools says which arguments attache fills or could fill.
func (d *Doctor) examineTools(list []byte, conn *assembly.Conn) {
	names := inspect.ToolNames(list)
	d.check = "tools"
	if twice := repeated(names); twice != "" {
		d.warn("report it to the server's makers: a call by that name reaches only one of them", "it has two tools named %q", twice)
	}
	d.check = "arguments"
	rules := assembly.ArgumentRules(d.Settings)
	groups := groupArguments(toolArguments(list), rules)
	d.Arguments = groups
	for _, g := range groups {
		d.tellArgument(g, conn, len(names))
	}
	for _, r := range rules {
		acts := slices.ContainsFunc(groups, func(g argumentGroup) bool { return g.Rule == r.Name })
		if !acts && r.Name != "" && d.Settings.Arguments != nil {
			d.note("nothing, if it is for another server; or correct its tools or argument",
				"%s (argument %s) is for no argument of this server's tools", r.Name, strings.Join(r.Argument, "."))
		}
	}
	d.Rules = suggestedRules(groups, len(names))
	if len(groups) == 0 {
		d.ok("no tool has an argument that looks like a workspace, project, organisation, repository or tenant")
	}
}

// tellArgument says what attache does with an argument, of how many tools there
// are in all.
func (d *Doctor) tellArgument(g argumentGroup, conn *assembly.Conn, all int) {
	what := fmt.Sprintf("%q of %s", g.Argument, toolsText(g.Tools, all))
	switch {
	case g.Rule == "" && g.Path:
		d.note("look at the rules below, and paste those that are right for you", "%s is not filled; %s", what, g.reason())
	case g.Rule == "" && g.builtIn:
		d.note("nothing; or, if it does take that path, write a rule for it, as docs/rules.md has them",
			"%s is left alone by the built-in rule: %s", what, g.reason())
	case g.Rule == "" && g.Optional && g.suggest.constant():
		d.note("nothing: without it the call means something of its own", "%s is optional, looks like %s and is not filled", what, withArticle(g.Kind))
	case g.Rule == "":
		d.note("look at the rules below, and paste those that are right for you", "%s looks like %s and is not filled", what, withArticle(g.Kind))
	case g.Mode == string(arguments.Forbid):
		d.ok("%s is forbidden by %s", what, g.Rule)
	case g.Value == workspaceValue && !g.Path && g.Words != "":
		d.warn("correct the rule; the value may be session.workspace.id, or a text of your own",
			"%s is set by %s from %s, which it does not take: %s", what, g.Rule, g.Value, g.reason())
	case g.Value == workspaceValue && !g.Path:
		d.note("see in the server's documentation that it takes that path", "%s is set by %s (%s) from %s; %s", what, g.Rule, g.Mode, g.Value, g.reason())
	case d.unknownValue(g.Value, conn):
		d.note("nothing, if the client says it; or say it by the flags or a key, as in --workspace",
			"%s is set by %s (%s) from %s, which is not known here", what, g.Rule, g.Mode, g.Value)
	default:
		d.ok("%s is set by %s (%s) from %s", what, g.Rule, g.Mode, g.Value)
	}
}

// reason says why an argument takes the path of the workspace, or why not.
func (g *argumentGroup) reason() string {
	if g.Words == "" {
		return g.Why
	}
	return fmt.Sprintf("%s (%q)", g.Why, g.Words)
}

// unknownValue reports whether a value is a fact of the session that is not known.
func (d *Doctor) unknownValue(value string, conn *assembly.Conn) bool {
	fact, known := d.identified(conn.Context()).Lookup(value)
	return known && fact.Empty()
}
