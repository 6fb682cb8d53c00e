package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/trust"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/policy/filesource"
)

// policies requests the principal's policies from the policy source.
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
				return // reported with the configuration
			}
			d.warn("correct the file", "%v", p)
		}
	}
	source, err := assembly.ConfiguredSource(d.Process, d.Settings)
	if err != nil {
		return // reported with the configuration: a missing token
	}
	q, err := assembly.PolicyQuery(ctx, d.Process, d.Settings)
	if err != nil {
		return // reported with the identity
	}
	e, err := source.Effective(ctx, q)
	if err != nil {
		d.problem(d.sourceRemedy(q, err), "%s returns no policies: %v", d.sourceName(), err)
		return
	}
	if e.Empty() {
		d.warn("write one, or correct policy.scope", "%s has no policies for the scope %q", d.sourceName(), q.Scope)
		return
	}
	d.ok("%s has %s for the scope %q; \"attache policy show\" prints the text", d.sourceName(), assembly.PolicyCounts(e), q.Scope)
}

// workspacePolicies reports whether the workspace has policies of its own, and whether they are
// trusted.
func (d *Doctor) workspacePolicies() {
	path := assembly.BaseContext(d.Process, d.Settings).Workspace.Value
	if path == "" || strings.Contains(path, "://") {
		return
	}
	workspace, real, err := trust.Resolve(path)
	if err != nil {
		return // reported with the session
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

// sourceName returns the directory or address of the policy source, without parts that may be secret.
func (d *Doctor) sourceName() string {
	return cmp.Or(d.Settings.Policy.Dir, config.ShownAddress(d.Settings.Policy.URL))
}

// sourceRemedy returns what to do about an error of the policy source.
func (d *Doctor) sourceRemedy(q policy.Query, err error) string {
	switch {
	case errors.Is(err, policy.ErrUnknownScope) && q.Scope == "":
		return "give the key a scope, or set --scope or policy.scope"
	case errors.Is(err, policy.ErrUnknownScope):
		return "correct the scope of the key, --scope or policy.scope"
	case errors.Is(err, policy.ErrUnauthorized):
		return "give a key it knows in ATTACHE_API_KEY, or its token with policy.token_env"
	case errors.Is(err, policy.ErrInvalid):
		return `correct its policies; "attache policy check" shows where`
	}
	return "check that it runs, can be reached from here and answers as docs/policies.md says; sessions continue without policies until then"
}
