package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
)

// reloadable lists the keys, or sections, that take effect in a running session. The others
// define the session and do not change until it ends. Keep [Settings.Reloaded] in step with it.
var reloadable = []string{
	"arguments", "rewrite", "access", "rates", "policy", "briefing",
	"dry_run", "identity.keys_file", "identity.jwt", "identity.token_file", "identity.api_key_file",
}

// Reloaded returns the settings of a running session after a reload: those of was, with the
// values of s for the keys that are [reloadable]. A layer that is compiled again must get the old
// values of all other keys, or half of the audit would follow the old settings and half the new.
func (was *Settings) Reloaded(s *Settings) *Settings {
	out := *was
	out.Arguments, out.Rewrite, out.Access = s.Arguments, s.Rewrite, s.Access
	out.Policy, out.Briefing, out.DryRun = s.Policy, s.Briefing, s.DryRun
	out.Identity.KeysFile, out.Identity.JWT, out.Identity.TokenFile = s.Identity.KeysFile, s.Identity.JWT, s.Identity.TokenFile
	out.APIKeyFile, out.File, out.Included, out.Warnings, out.Applied = s.APIKeyFile, s.File, s.Included, s.Warnings, s.Applied
	out.origins = maps.Clone(was.origins)
	maps.DeleteFunc(out.origins, func(key string, _ setting.Origin) bool { return isReloadable(key) })
	for key, from := range s.origins {
		if isReloadable(key) {
			out.origins[key] = from
		}
	}
	return &out
}

// isReloadable reports whether a key takes effect in a running session, or is the name of a rule,
// such as access.rules[1].
func isReloadable(key string) bool {
	return strings.HasSuffix(key, "]") || slices.ContainsFunc(reloadable, func(r string) bool { return Below(key, r) })
}

// Values returns the values of all keys as texts.
func Values(s *Settings) map[string]string {
	all := map[string]string{}
	for _, o := range Options(s) {
		if o.Key != "" {
			all[o.Key] = o.Value.String()
		}
	}
	return all
}

// ChangedKeys returns the keys whose values differ, sorted.
func ChangedKeys(before, after *Settings) []string {
	var changed []string
	was := Values(before)
	for key, value := range Values(after) {
		if was[key] != value {
			changed = append(changed, key)
		}
	}
	// The texts of these values hide what may be secret.
	if !maps.Equal(before.Server.Env, after.Server.Env) {
		changed = append(changed, "server.env")
	}
	if !maps.Equal(before.Server.Remote.Headers, after.Server.Remote.Headers) {
		changed = append(changed, "server.headers")
	}
	if before.Server.Remote.OAuth.ClientSecret != after.Server.Remote.OAuth.ClientSecret {
		changed = append(changed, "server.oauth.client_secret")
	}
	if before.Store != after.Store {
		changed = append(changed, "store.url")
	}
	if !slices.Equal(before.served, after.served) {
		changed = append(changed, "servers")
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

// SessionFileLost reports whether key differs only because the session file that set it can no
// longer be read. That is logged when the session is identified.
func SessionFileLost(before, after *Settings, key string) bool {
	return after.Operator.FileErr != nil && after.Origin(key).Default() && before.Origin(key) == before.Operator.Origin()
}

// SameValues reports whether key, or every key below it, has the same value in both settings.
func SameValues(before, after *Settings, key string) bool {
	return !slices.ContainsFunc(ChangedKeys(before, after), func(k string) bool { return Below(k, key) })
}

// Below reports whether key is section or a key in that section.
func Below(key, section string) bool {
	return key == section || strings.HasPrefix(key, section+".")
}

// SplitReloadable returns the keys that take effect now, and those that take effect in the next
// session.
func SplitReloadable(changed []string) (now, later []string) {
	for _, key := range changed {
		if isReloadable(key) {
			now = append(now, key)
		} else {
			later = append(later, key)
		}
	}
	return now, later
}
