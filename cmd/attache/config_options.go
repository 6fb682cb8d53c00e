package main

import (
	"slices"
	"strings"
	"time"

	"github.com/attache-mcp/attache/sessionstate"
)

// ownPrefix begins the names of attache's own environment variables.
const ownPrefix = "ATTACHE"

// An option is one value that can be set, and the ways to set it.
type option struct {
	// key is its place in the configuration file, empty if it has none.
	key string
	// flag is its name on the command line, empty if it has none. An option
	// with a flag can also be set by the variable of the same name; see
	// [option.variable].
	flag string
	// hint stands for the value in the help of the flag.
	hint string
	help string
	// injected ends the name of the variable that attache gives the server for
	// this value, and reads as well, under each of session.env_prefixes.
	injected string
	value    value
}

// variable returns the name of the flag's own variable: ATTACHE_WORKSPACE_ID is
// that of --workspace-id.
func (o option) variable() string {
	return ownPrefix + "_" + strings.ToUpper(strings.ReplaceAll(o.flag, "-", "_"))
}

// options returns every option there is, bound to s, in the order in which people
// are told of them. It is the one list behind the reader of the file, the flags,
// the variables, `config show` and `config schema`.
func options(s *Settings) []option {
	return slices.Concat(sessionOptions(s), sessionFileOptions(s), identityOptions(s), tokenOptions(s), policyOptions(s), accessOptions(s), auditOptions(s), injectOptions(s), otherOptions(s))
}

// trustLevels are the words for trust.
func trustLevels() []string { return []string{sessionstate.Direct, sessionstate.Sandboxed} }

func sessionOptions(s *Settings) []option {
	o := &s.Session
	trust := choice{&o.Trust, trustLevels()}
	return []option{
		{key: "server.name", help: "what rules and audit call the server; default: the package or image that its command runs, else the command's base name", value: text{to: &s.Server.Name}},
		{key: "server.env", help: "more environment for the server, never overwritten by what attache injects", value: variables{&s.Server.Env}},
		{key: "session.workspace", flag: "workspace", hint: "PATH", injected: "WORKSPACE_PATH",
			help: "the workspace this session is about", value: place{&o.Workspace}},
		{key: "session.workspace_id", flag: "workspace-id", hint: "ID", injected: "WORKSPACE_ID",
			help: "the durable id of the workspace", value: text{to: &o.WorkspaceID}},
		{key: "session.id", flag: "session", hint: "ID", injected: "SESSION_ID",
			help: "the key of the session, instead of the one found", value: text{to: &o.ID}},
		{key: "session.trust", flag: "trust", hint: "LEVEL", injected: "TRUST_LEVEL",
			help: "direct (a person is present) or sandboxed", value: trust},
		{key: "session.ttl", help: "how long a session may be idle before it is over", value: duration{&o.TTL, time.Second}},
		{key: "session.env_prefixes", help: "prefixes of the variables read from, and injected under", value: words{to: &o.EnvPrefixes, check: variableName}},
		{key: "session.meta.workspace", help: "where in _meta a workspace may be: a text is one literal key, a list is a path into objects", value: metaPaths{&o.Meta.Workspace}},
		{key: "session.meta.conversation", help: "where in _meta a key of the conversation may be", value: metaPaths{&o.Meta.Conversation}},
		{key: "session.host_env.session", help: "variables in which clients give servers the session", value: words{to: &o.HostEnv.Session, check: variableName}},
		{key: "session.host_env.workspace", help: "variables in which clients give servers the workspace", value: words{to: &o.HostEnv.Workspace, check: variableName}},
		{key: "session.roots", help: "ask legacy clients that have roots for them", value: boolean{&o.Roots}},
		{key: "session.git_root", help: "take the git root of the working directory for the workspace if nothing better is known", value: boolean{&o.GitRoot}},
	}
}

func identityOptions(s *Settings) []option {
	o := &s.Identity
	return []option{
		{key: "identity.api_key_file", flag: "api-key-file", hint: "FILE",
			help: "file that holds the session's API key (or give the key itself in ATTACHE_API_KEY)", value: keyFile{file{&s.APIKeyFile}}},
		{key: "identity.keys_file", help: "the hashes of the keys that are accepted; see \"attache key create\"", value: file{&o.KeysFile}},
		{key: "identity.meta_api_key", help: `accept a key in _meta["io.github.attache-mcp/apiKey"]`, value: boolean{&o.MetaAPIKey}},
		{key: "identity.cache", help: "how long a key that was looked up is not looked up again", value: duration{&o.Cache, time.Millisecond}},
		{key: "identity.key_prefix", help: "what the keys made here begin with", value: text{&o.KeyPrefix, keyPrefix}},
	}
}

func policyOptions(s *Settings) []option {
	o, b := &s.Policy, &s.Briefing
	return []option{
		{flag: "policy", hint: "DIR|URL", help: "where policies come from: a directory of policy files or an HTTP endpoint", value: source{o}},
		{key: "policy.dir", help: "a directory of policy files", value: file{&o.Dir}},
		{key: "policy.url", help: "an HTTP endpoint with the effective policies, instead of policy.dir", value: address{&o.URL}},
		{key: "policy.scope", flag: "scope", hint: "SCOPE", help: "the policy scope used when the API key names none", value: text{to: &o.Scope}},
		{key: "policy.timeout", help: "how long the endpoint may take before it counts as down", value: duration{&o.Timeout, time.Millisecond}},
		{key: "policy.token_env", help: "the variable that holds the endpoint's token; default: the session's API key", value: text{&o.TokenEnv, tokenName}},
		{key: "briefing.channels", help: "how the briefing reaches the model; unless set, as the client shows it", value: words{to: &b.Channels, known: []string{"response", "instructions"}}},
		{key: "briefing.once_per", help: "give the briefing once among all servers of a session, or once a server", value: choice{&b.OncePer, []string{"session", "server"}}},
		{key: "briefing.structured", help: "what to do with a first result that has structuredContent", value: choice{&b.Structured, []string{"auto", "member", "text-only", "defer"}}},
		{key: "briefing.wait", help: "how long the first response waits for the policies", value: duration{&b.Wait, time.Millisecond}},
		{key: "briefing.max_bytes", help: "how long the briefing may be", value: count{&b.MaxBytes, 512, 1 << 20}},
	}
}

func otherOptions(s *Settings) []option {
	return []option{
		{key: "arguments", help: "which arguments of which tools are given which values; without this key: workspace, from the session's", value: argumentRuleList(&s.Arguments)},
		{key: "rewrite", help: "what the client sees and calls: tools hidden, renamed, described, arguments set", value: rewriteRuleList(&s.Rewrite)},
		traceOption(s),
		{key: "limits.hold", help: "a frame larger than this is streamed on and not looked into", value: size{&s.Limits.Hold, 4 << 10, 1 << 30}},
		{key: "limits.in_flight", help: "with this many calls in flight the client waits", value: count{&s.Limits.InFlight, 1, 10_000_000}},
		{key: "record", flag: "record", hint: "FILE", help: "record the session, scrubbed of secrets, for \"attache replay\"", value: file{&s.Record}},
		{key: "stdout_noise", flag: "stdout-noise", hint: "WHAT", help: "drop or forward what the server writes to stdout that is not JSON", value: choice{&s.StdoutNoise, []string{"drop", "forward"}}},
		{key: "log.level", flag: "log-level", hint: "LEVEL", help: "debug, info, warn or error", value: choice{&s.Log.Level, []string{"debug", "info", "warn", "error"}}},
		{key: "log.format", flag: "log-format", hint: "FORMAT", help: "text or json", value: choice{&s.Log.Format, []string{"text", "json"}}},
		{key: "dry_run", flag: "dry-run", help: "decide and log everything, change nothing", value: boolean{&s.DryRun}},
	}
}
