package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/cmd/attache/internal/filecheck"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/sessionstate"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// identityTime is the timeout for an issuer.
const identityTime = 30 * time.Second

// principalText describes p with the terms of the configuration.
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

// configuration reports mistakes in the settings and in the files that they name.
func (d *Doctor) configuration(mistakes error) {
	d.check = "configuration"
	d.valid = mistakes == nil
	if d.valid {
		mistakes = filecheck.All(d.Process, d.Settings)
	}
	const remedy = `correct it there; "attache config check" checks it again`
	problems, _ := errors.AsType[setting.Problems](mistakes)
	for _, p := range problems {
		d.problem(remedy, "%v", p)
	}
	for _, w := range d.Settings.Warnings {
		d.warn(remedy, "%v", w)
	}
	for _, text := range config.UnknownVariables(d.Process, d.Settings) {
		d.warn("correct its name, or do not set it", "%s", text)
	}
	switch {
	case !d.valid:
		d.note("correct the configuration, then run doctor again", "the session, keys and policies were not looked at")
	case len(problems) > 0: // of files that it names
	case d.Settings.File == "":
		d.ok("%s", d.Settings.NoFile())
	default:
		d.ok("%s is valid", d.Settings.File)
	}
	for _, e := range d.Settings.Applied {
		d.ok("servers.%s applies to this server (%v)", e.Name, e.From)
	}
	d.unmatched()
}

// unmatched reports the entries whose rules may be meant for this server, if none applies: those that match a
// server by its name, and if the command does not name a package, those that match by a package.
func (d *Doctor) unmatched() {
	var names, entries []string
	for _, e := range d.Settings.Unmatched(d.Server) {
		if e.ByName() {
			names = append(names, e.Name)
			continue
		}
		entries = append(entries, fmt.Sprintf("%s is for %v", e.Name, &e.Match))
	}
	if len(names) > 0 {
		d.note("if one is meant for it, add a match to the entry, by package, command or url",
			"no entry of servers applies to this server, whose name is %q; without a match are %s", d.Settings.Server.Name, strings.Join(names, ", "))
	}
	if len(entries) > 0 {
		d.note("if one is meant for it, start the server by npx or uvx, or by a program of its own, and name that with command: in the match of the entry",
			"no entry of servers applies to this server, and its command names no package: %s", strings.Join(entries, ", "))
	}
}

// session reports the workspace that is known before the first message.
func (d *Doctor) session() {
	d.check = "session"
	base := assembly.BaseContext(d.Process, d.Settings)
	path, _ := base.Lookup("session.workspace.path")
	if path.Empty() {
		d.note("nothing, if your client says it (roots, _meta); or give --workspace, or set session.git_root: true",
			"no workspace is known before the client says one")
	} else if info, err := os.Stat(path.Value); !strings.Contains(path.Value, "://") && (err != nil || !info.IsDir()) {
		d.warn("make the directory, or correct where it comes from", "the workspace %s (from %s) is not a directory", path.Value, path.From)
	} else {
		d.ok("the workspace is %s (from %s)", path.Value, path.From)
	}
}

// keys checks the key file: whether others can read it, and its keys.
func (d *Doctor) keys() {
	d.check = "keys"
	path := d.Settings.Identity.KeysFile
	if d.Settings.Store.Shared() {
		d.ok("keys are looked up in the database of store.url: attache key list shows them")
		return
	}
	if path == "" {
		d.ok("no key file is configured")
		return
	}
	entries, err := identity.List(path)
	switch _, missing := os.Stat(path); {
	case cli.IsMissing(missing) && d.Settings.IsDefaultKeysFile():
		d.ok("there is no key file: no API keys are accepted")
		return
	case err != nil:
		return // reported with the configuration
	}
	valid, now := 0, time.Now()
	for _, e := range entries {
		if e.Check(now) == nil {
			valid++
		}
	}
	d.ok("%s is closed to others; %s, %d valid", path, cli.Plural(len(entries), "key"), valid)
}
