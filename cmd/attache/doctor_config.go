package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// configuration tells of mistakes in the settings and in the files they name.
func (d *doctor) configuration(mistakes error) {
	d.check = "configuration"
	d.valid = mistakes == nil
	if d.valid {
		mistakes = d.checkFilesNamed(d.s)
	}
	var all Problems
	errors.As(mistakes, &all)
	for _, p := range all {
		d.problem(`correct it there; "attache config check" tells when all is well`, "%v", p)
	}
	for _, w := range d.s.Warnings {
		d.warn(`correct it there; "attache config check" tells when all is well`, "%v", w)
	}
	for _, text := range d.unreadVariables(d.s) {
		d.warn("correct its name, or do not set it", "%s", text)
	}
	switch {
	case !d.valid:
		d.note("correct the configuration, then run doctor again", "the session, keys and policies were not looked at")
	case d.s.File == "":
		d.ok("there is no configuration file: the defaults hold")
	default:
		d.ok("%s is read", d.s.File)
	}
}

// session says what is known of a session before its first message.
func (d *doctor) session() {
	d.check = "session"
	base := baseContext(d.process, d.s)
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
func (d *doctor) keys() {
	d.check = "keys"
	path := d.s.Identity.KeysFile
	if path == "" {
		d.ok("no key file is configured")
		return
	}
	entries, err := identity.List(path)
	switch _, missing := os.Stat(path); {
	case errors.Is(missing, fs.ErrNotExist) && d.s.Origin("identity.keys_file").Default():
		d.ok("there is no key file: no API keys are accepted")
		return
	case err != nil && !d.s.Origin("identity.keys_file").Default():
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
	d.ok("%s is closed to others; %s, of which %d hold", path, plural(len(entries), "key"), good)
}

// identity says who a session would act for, and how far it is trusted.
func (d *doctor) identity(ctx context.Context) {
	d.check = "identity"
	who, err := newCaller(d.process, d.s, heldKeys{})
	if err != nil {
		d.problem("correct the setting it names", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, explainTime)
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
	case len(who.accept) > 0:
		d.ok("nobody is identified until a client brings a credential in _meta")
	default:
		d.note("nothing, if no rule asks who calls; or give a key in ATTACHE_API_KEY", "nobody is identified")
	}
	trust, _ := d.identified(baseContext(d.process, d.s)).Lookup("session.trust")
	d.ok("the trust is %s %s", trust.Value, explainedFact{Source: trust.Source.String(), From: trust.From}.provenance())
}

// identified returns ctx as that of a session which was identified as doctor was.
func (d *doctor) identified(ctx *sessionstate.Context) *sessionstate.Context {
	return ctx.With(func(ctx *sessionstate.Context) { ctx.Principal, ctx.Unidentified = d.principal, d.unidentified })
}

// refused tells why nobody is identified: for the session file, which is read first,
// or for the credential.
func (d *doctor) refused(who *caller, err error) {
	if _, fault := who.asserted(); fault != nil || who.own.text == nil {
		d.problem("correct the session file, or do not name it", "nobody is identified: %v", err)
		return
	}
	do := `give a key that holds; "attache key list" shows them`
	if text, fault := who.own.text(); fault != nil || identity.LooksLikeToken(text) {
		do = "give a token that holds, or correct identity.jwt"
	}
	d.problem(do, "the credential from %s identifies nobody: %v", who.own.from, err)
}

// principalText says who p is, in the words of the configuration.
func principalText(p *sessionstate.Principal) string {
	var parts []string
	for _, f := range []struct{ name, value string }{
		{"user", p.User}, {"tenant", p.Tenant}, {"scope", p.Scope},
		{"roles", strings.Join(p.Roles, " ")}, {"plan", p.Plan}, {"trust", p.Trust}, {"key", p.KeyID},
	} {
		if f.value != "" {
			parts = append(parts, f.name+" "+f.value)
		}
	}
	return strings.Join(parts, ", ")
}

// policies asks the policy source what it has for the principal.
func (d *doctor) policies(ctx context.Context) {
	d.check = "policies"
	d.workspacePolicies()
	if d.s.Policy.Dir == "" && d.s.Policy.URL == "" {
		d.ok("no policy source is configured")
		return
	}
	if d.s.Policy.Dir != "" {
		for _, p := range filesource.Check(d.s.Policy.Dir) {
			if !p.Warning {
				return // told with the configuration
			}
			d.warn("correct the file", "%v", p)
		}
	}
	source, err := d.wantSource(d.s)
	if err != nil {
		return // as above: a token that is not there
	}
	q, err := d.query(ctx, d.s)
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
func (d *doctor) workspacePolicies() {
	path := baseContext(d.process, d.s).Workspace.Value
	if path == "" || strings.Contains(path, "://") {
		return
	}
	workspace, real, err := trust.Resolve(path)
	if err != nil {
		return // told with the session
	}
	text, err := trust.Read(real)
	store := d.trusted()
	r, known := store.Find(workspace)
	do := `look at them with "attache trust --show PATH"; "attache trust PATH" uses them`
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		d.warn("correct the file, or take it out", "the workspace's own policies (%s) cannot be read: %v", trust.File, reason(err))
	case !known:
		d.note(do, "the workspace has policies of its own (%s), which are not trusted and not used", trust.File)
	case r.Digest != policy.Digest(string(text)):
		d.warn(do, "the workspace's own policies (%s) have changed since they were trusted, and are not used", trust.File)
	default:
		d.ok("the workspace's own policies (%s) are trusted", trust.File)
	}
}

// contents counts what holds.
func contents(e policy.Effective) string {
	policies := itoa(len(e.Policies)) + " policies"
	if len(e.Policies) == 1 {
		policies = "1 policy"
	}
	return policies + " and " + plural(len(e.Objectives), "objective")
}

// sourceName names the policy source without what an address may hold of secrets.
func (d *doctor) sourceName() string {
	if d.s.Policy.Dir != "" {
		return d.s.Policy.Dir
	}
	return address{&d.s.Policy.URL}.shown()
}

// sourceRemedy says what to do about an error of the policy source.
func (d *doctor) sourceRemedy(q policy.Query, err error) string {
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
