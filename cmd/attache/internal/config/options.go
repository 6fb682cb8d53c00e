package config

import (
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// Prefix begins the names of attache's own environment variables.
const Prefix = "ATTACHE"

// An option is one value that can be set, and the ways to set it.
type option struct {
	// Key is its place in the configuration file, empty if it has none.
	Key string
	// Flag is its name on the command line, empty if it has none. An option
	// with a flag can also be set by the variable of the same name; see
	// [option.variable].
	Flag string
	// of is the only command that has the flag, "" for all that wrap a server.
	of string
	// Hint stands for the value in the help of the flag.
	Hint string
	Help string
	// Injected ends the name of the variable that attache gives the server for
	// this value, and reads as well, under each of session.env_prefixes.
	Injected string
	value    value
}

// Variable returns the name of the flag's own variable: ATTACHE_WORKSPACE_ID is
// that of --workspace-id.
func (o option) Variable() string {
	return Prefix + "_" + strings.ToUpper(strings.ReplaceAll(o.Flag, "-", "_"))
}

// Shown returns the value as it may be shown: without secrets.
func (o option) Shown() string {
	if v, ok := o.value.(interface{ shown() string }); ok {
		return v.shown()
	}
	return o.value.String()
}

// Rules returns the names of the rules in a list, in order; none for what is no list.
func (o option) Rules() []string {
	if v, ok := o.value.(list); ok {
		return v.names()
	}
	return nil
}

// RuleText returns the rule of that name, such as "servers.git.arguments[0]", as the
// configuration writes it, "" if there is none. [Settings.Origin] has its place.
func RuleText(s *Settings, name string) string {
	for _, o := range Options(s) {
		if v, ok := o.value.(list); ok {
			if text := v.named(name); text != "" {
				return text
			}
		}
	}
	return ""
}

// Options returns every option there is, bound to s, in the order in which people
// are told of them. It is the one list behind the reader of the file, the flags,
// the variables, `config show` and `config schema`.
func Options(s *Settings) []option {
	return slices.Concat(sessionOptions(s), remoteOptions(s), oauthOptions(s), sessionFileOptions(s), identityOptions(s), tokenOptions(s), policyOptions(s), accessOptions(s), auditOptions(s), injectOptions(s), serveOptions(s), teamsOptions(s), otherOptions(s))
}

// TrustLevels are the words for trust.
func TrustLevels() []string { return []string{sessionstate.Direct, sessionstate.Sandboxed} }

func sessionOptions(s *Settings) []option {
	o := &s.Session
	trust := choice{&o.Trust, TrustLevels()}
	return []option{
		{Key: "server.name", Help: "what rules and audit call the server; default: the package or image that its command runs, else the command's base name", value: text{to: &s.Server.Name}},
		{Key: "server.env", Help: "more environment for the server, never overwritten by what attache injects", value: variables(&s.Server.Env)},
		{Key: "server.pass_messaging", Help: "let the server have CLAUDE_CODE_MESSAGING_SOCKET and _TOKEN, with which it can write to the model as the user", value: boolean{&s.Server.PassMessaging}},
		{Key: "session.workspace", Flag: "workspace", Hint: "PATH", Injected: "WORKSPACE_PATH",
			Help: "the workspace this session is about", value: place{&o.Workspace}},
		{Key: "session.workspace_id", Flag: "workspace-id", Hint: "ID", Injected: "WORKSPACE_ID",
			Help: "the durable id of the workspace", value: text{to: &o.WorkspaceID}},
		{Key: "session.id", Flag: "session", Hint: "ID", Injected: "SESSION_ID",
			Help: "the key of the session, instead of the one found", value: text{to: &o.ID}},
		{Key: "session.trust", Flag: "trust", Hint: "LEVEL", Injected: "TRUST_LEVEL",
			Help: "direct (a person is present) or sandboxed", value: trust},
		{Key: "session.ttl", Help: "how long a session may be idle before it is over", value: duration{&o.TTL, time.Second}},
		{Key: "session.env_prefixes", Help: "prefixes of the variables that are read and injected", value: words{to: &o.EnvPrefixes, check: CheckVariableName}},
		{Key: "session.meta.workspace", Help: "where in _meta a workspace may be: a text is one key, a list is a path into objects", value: metaPaths{&o.Meta.Workspace}},
		{Key: "session.meta.conversation", Help: "where in _meta a key of the conversation may be", value: metaPaths{&o.Meta.Conversation}},
		{Key: "session.host_env.session", Help: "variables in which clients give servers the session", value: words{to: &o.HostEnv.Session, check: CheckVariableName}},
		{Key: "session.host_env.workspace", Help: "variables in which clients give servers the workspace", value: words{to: &o.HostEnv.Workspace, check: CheckVariableName}},
		{Key: "session.roots", Help: "ask legacy clients that have roots for them", value: boolean{&o.Roots}},
		{Key: "session.git_root", Help: "take the git root of the working directory for the workspace if nothing better is known", value: boolean{&o.GitRoot}},
	}
}

func identityOptions(s *Settings) []option {
	o := &s.Identity
	return []option{
		{Key: "identity.api_key_file", Flag: "api-key-file", Hint: "FILE",
			Help: "file that holds the session's API key (or give the key itself in ATTACHE_API_KEY)", value: keyFile{file{&s.APIKeyFile}}},
		{Key: "identity.keys_file", Help: "the hashes of the keys that are accepted; see \"attache key create\"", value: file{&o.KeysFile}},
		{Key: "identity.meta_api_key", Help: `accept a key in _meta["io.github.attache-mcp/apiKey"]`, value: boolean{&o.MetaAPIKey}},
		{Key: "identity.cache", Help: "how long the result of a key's look-up is used", value: duration{&o.Cache, time.Millisecond}},
		{Key: "identity.key_prefix", Help: "what the keys made here begin with", value: text{&o.KeyPrefix, keyPrefix}},
	}
}

func policyOptions(s *Settings) []option {
	o, b := &s.Policy, &s.Briefing
	return []option{
		{Flag: "policy", Hint: "DIR|URL", Help: "where policies come from: a directory of policy files or an HTTP endpoint", value: source{o}},
		{Key: "policy.dir", Help: "a directory of policy files", value: file{&o.Dir}},
		{Key: "policy.url", Help: "an HTTP endpoint with the effective policies, instead of policy.dir", value: address{&o.URL}},
		{Key: "policy.scope", Flag: "scope", Hint: "SCOPE", Help: "the policy scope used when the API key names none", value: text{to: &o.Scope}},
		{Key: "policy.timeout", Help: "how long the endpoint may take before it counts as down", value: duration{&o.Timeout, time.Millisecond}},
		{Key: "policy.token_env", Help: "the variable that holds the endpoint's token; default: the session's API key", value: text{&o.TokenEnv, tokenName}},
		{Key: "briefing.channels", Help: "how the briefing reaches the model; unless set, as the client shows it", value: words{to: &b.Channels, known: []string{"response", "instructions"}}},
		{Key: "briefing.once_per", Help: "give the briefing once among all servers of a session, or once a server", value: choice{&b.OncePer, []string{"session", "server"}}},
		{Key: "briefing.structured", Help: "what to do with a first result that has structuredContent", value: choice{&b.Structured, []string{"auto", "member", "text-only", "defer"}}},
		{Key: "briefing.wait", Help: "how long the first response waits for the policies", value: duration{&b.Wait, time.Millisecond}},
		{Key: "briefing.max_bytes", Help: "how long the briefing may be", value: count{&b.MaxBytes, 512, 1 << 20}},
	}
}

func otherOptions(s *Settings) []option {
	return []option{
		{Key: "arguments", Help: "which arguments of tools are filled, pinned or forbidden; without this key: workspace is filled", value: argumentRuleList(&s.Arguments)},
		{Key: "rewrite", Help: "what the client sees and calls: tools hidden, renamed, described, arguments set", value: rewriteRuleList(&s.Rewrite)},
		traceOption(s),
		{Key: "limits.hold", Help: "a frame larger than this is streamed and not read", value: size{&s.Limits.Hold, 4 << 10, 1 << 30}},
		{Key: "limits.in_flight", Help: "with this many calls in flight the client waits", value: count{&s.Limits.InFlight, 1, 10_000_000}},
		{Key: "record", Flag: "record", Hint: "FILE", Help: "record the session, scrubbed of secrets, for \"attache replay\"", value: file{&s.Record}},
		{Key: "stdout_noise", Flag: "stdout-noise", Hint: "WHAT", Help: "drop or forward what the server writes to stdout that is not JSON", value: choice{&s.StdoutNoise, []string{"drop", "forward"}}},
		{Key: "log.level", Flag: "log-level", Hint: "LEVEL", Help: "debug, info, warn or error", value: choice{&s.Log.Level, []string{"debug", "info", "warn", "error"}}},
		{Key: "log.format", Flag: "log-format", Hint: "FORMAT", Help: "text or json", value: choice{&s.Log.Format, []string{"text", "json"}}},
		{Key: "dry_run", Flag: "dry-run", Help: "decide and log everything, change nothing", value: boolean{&s.DryRun}},
	}
}
