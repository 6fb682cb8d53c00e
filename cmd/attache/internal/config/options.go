package config

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/attache-mcp/attache/cmd/attache/internal/rules"
	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// Options returns all options, bound to s, in the order of `config show`. The reader of the file,
// the flags, the variables, `config show` and `config schema` all use this list.
func Options(s *Settings) []setting.Option {
	return slices.Concat(s.sessionOptions(), s.remoteOptions(), s.oauthOptions(), s.restartOptions(), s.identityOptions(), s.tokenOptions(), s.policyOptions(), s.accessOptions(), s.auditOptions(), s.injectOptions(), s.serveOptions(), s.storeOptions(), s.teamsOptions(), s.otherOptions())
}

// AddFlags adds to cmd the flags that override the configuration.
func AddFlags(cmd *cobra.Command) setting.Flags { return setting.AddFlags(cmd, flagOptions()) }

// flagOptions returns the options for their names and help texts only. A start adds flags to ten
// commands, which share the options; do not set their values.
var flagOptions = sync.OnceValue(func() []setting.Option { return Options(&Settings{}) })

// RuleTexts returns the rules as the configuration writes them, by their names, such as
// "servers.git.arguments[0]". [Settings.Origin] returns the place of a rule.
func RuleTexts(s *Settings) map[string]string {
	texts := map[string]string{}
	for _, o := range Options(s) {
		for _, e := range o.Entries() {
			texts[e.Name] = e.Text
		}
	}
	return texts
}

func (s *Settings) sessionOptions() []setting.Option {
	o := &s.Session
	trust := setting.Choice(&o.Trust, TrustLevels()...)
	return []setting.Option{
		{Key: "server.name", Help: "what rules and audit call the server; default: the package or image that its command runs, else the command's base name; of a URL, also of mcp-remote's, the host without the port", Value: setting.Text(&s.Server.Name)},
		{Key: "server.env", Help: "environment variables for the server; attache overwrites none of them", Value: variables(&s.Server.Env)},
		{Key: "server.pass_messaging", Help: "pass CLAUDE_CODE_MESSAGING_SOCKET and _TOKEN to the server, which can then write to the model as the user", Value: setting.Bool(&s.Server.PassMessaging)},
		{Key: "session.workspace", Flag: "workspace", Hint: "PATH", Injected: "WORKSPACE_PATH",
			Help: "the workspace this session is about", Value: workspacePath{setting.Path(&o.Workspace), &o.Workspace}},
		{Key: "session.workspace_id", Flag: "workspace-id", Hint: "ID", Injected: "WORKSPACE_ID",
			Help: "the durable id of the workspace", Value: setting.Text(&o.WorkspaceID)},
		{Key: "session.id", Flag: "session", Hint: "ID", Injected: "SESSION_ID",
			Help: "the key of the session, instead of the one that attache finds", Value: setting.Text(&o.ID)},
		{Key: "session.trust", Flag: "trust", Hint: "LEVEL", Injected: "TRUST_LEVEL",
			Help: "direct (a person is present) or sandboxed", Value: trust},
		{Key: "session.ttl", Help: "how long a session may be idle before it ends", Value: setting.Duration(&o.TTL, time.Second)},
		{Key: "session.env_prefixes", Help: "prefixes of the variables that are read and injected", Value: setting.Words{To: &o.EnvPrefixes, Check: setting.VariableName}},
		{Key: "session.meta.workspace", Help: "where in _meta a workspace may be: a text is one key, a list is a path into objects", Value: setting.Paths(&o.Meta.Workspace)},
		{Key: "session.meta.conversation", Help: "where in _meta a key of the conversation may be", Value: setting.Paths(&o.Meta.Conversation)},
		{Key: "session.host_env.session", Help: "variables in which clients give servers the session", Value: setting.Words{To: &o.HostEnv.Session, Check: setting.VariableName}},
		{Key: "session.host_env.workspace", Help: "variables in which clients give servers the workspace", Value: setting.Words{To: &o.HostEnv.Workspace, Check: setting.VariableName}},
		{Key: "session.roots", Help: "ask legacy clients for their roots, if they support roots", Value: setting.Bool(&o.Roots)},
		{Key: "session.git_root", Help: "use the git root of the working directory, else the one that Codex names in its calls, as the workspace if no better value is known", Value: setting.Bool(&o.GitRoot)},
	}
}

func (s *Settings) restartOptions() []setting.Option {
	r := &s.Server.Restart
	return []setting.Option{
		{Key: "server.restart.on", Help: "crash: a server that ends after the handshake is started again, and the session continues; never: attache ends with it", Value: setting.Choice(&r.On, "crash", "never")},
		{Key: "server.restart.hold", Help: "how long calls wait for a server that is started again", Value: setting.Duration(&r.Hold, time.Millisecond)},
		{Key: "server.restart.hang", Help: "how long a server may be silent while calls are running before it is ended and started again; empty: no limit", Value: setting.OptionalDuration(&r.Hang, time.Second)},
		{Key: "server.restart.retry", Help: "tools (patterns) whose calls are sent again, though they may have run when the server ended", Value: setting.Words{To: &r.Retry}},
		{Key: "server.restart.notice", Help: "tell the model before the next result of a tool that the server has lost its memory", Value: setting.Bool(&r.Notice)},
	}
}

func (s *Settings) identityOptions() []setting.Option {
	o := &s.Identity
	return []setting.Option{
		{Key: "session.file", Flag: "session-file", Hint: "FILE",
			Help: "file in which the host describes the session: user, tenant, roles, permissions, trust, workspace", Value: setting.Path(&s.Operator.SessionFile)},
		{Key: "identity.api_key_file", Flag: "api-key-file", Hint: "FILE",
			Help: "file that holds the session's API key (or give the key itself in ATTACHE_API_KEY)", Value: setting.Path(&s.APIKeyFile, notKey)},
		{Key: "identity.keys_file", Help: "the hashes of the keys that are accepted (see \"attache key create\"); with store.url, the file that \"attache key import\" reads; default: keys.yaml beside the configuration", Value: setting.Path(&o.KeysFile)},
		{Key: "identity.meta_api_key", Help: `accept a key in _meta["io.github.attache-mcp/apiKey"]`, Value: setting.Bool(&o.MetaAPIKey)},
		{Key: "identity.cache", Help: "how long the result of looking up a key is used", Value: setting.Duration(&o.Cache, time.Millisecond)},
		{Key: "identity.key_prefix", Help: "the prefix of new API keys", Value: setting.Text(&o.KeyPrefix, identity.CheckPrefix)},
	}
}

func (s *Settings) policyOptions() []setting.Option {
	o, b := &s.Policy, &s.Briefing
	return []setting.Option{
		{Flag: "policy", Hint: "DIR|URL", Help: "where policies come from: a directory of policy files or an HTTP endpoint", Value: source{o}},
		{Key: "policy.dir", Help: "a directory of policy files", Value: setting.Path(&o.Dir)},
		{Key: "policy.url", Help: "an HTTP endpoint with the effective policies, instead of policy.dir", Value: policyURL(&o.URL)},
		{Key: "policy.scope", Flag: "scope", Hint: "SCOPE", Help: "the policy scope used when the API key names none", Value: setting.Text(&o.Scope)},
		{Key: "policy.timeout", Help: "how long the endpoint may take before it counts as down", Value: setting.Duration(&o.Timeout, time.Millisecond)},
		{Key: "policy.token_env", Help: "the variable that holds the endpoint's token; default: the session's API key", Value: setting.Text(&o.TokenEnv, setting.TokenVariable)},
		{Key: "briefing.channels", Help: "how the briefing reaches the model", Value: setting.Words{To: &b.Channels, Known: []string{"response", "instructions"}, Unset: "what the client shows", Empty: "name one, or remove the key"}},
		{Key: "briefing.once_per", Help: "session: one briefing for all servers of a session; server: one for each server", Value: setting.Choice(&b.OncePer, "session", "server")},
		{Key: "briefing.structured", Help: "what to do with a first result that has structuredContent", Value: setting.Choice(&b.Structured, "auto", "member", "text-only", "defer")},
		{Key: "briefing.wait", Help: "how long the first response waits for the policies", Value: setting.Duration(&b.Wait, time.Millisecond)},
		{Key: "briefing.max_bytes", Help: "how long the briefing may be, in bytes", Value: setting.Count(&b.MaxBytes, 512, 1<<20)},
	}
}

func (s *Settings) accessOptions() []setting.Option {
	o := &s.Access
	return []setting.Option{
		{Key: "access.default", Help: "what happens to a call that no rule decides", Value: setting.Choice(&o.Default, string(access.Allow), string(access.Deny))},
		{Key: "access.hide", Help: "leave tools that may not be called out of tools/list", Value: setting.Bool(&o.Hide)},
		{Key: "access.rules", Help: "who may call what; the first rule that applies decides", Value: rules.Access(&o.Rules)},
		{Key: "access.rates", Help: "how often tools may be called", Value: rules.Rates(&o.Rates)},
		{Key: "rates.down", Help: "what happens to calls under a rate while the database of store.url does not answer: share counts them in each process, which has its share of the limit; closed refuses them",
			Value: setting.Choice((*string)(&o.RatesDown), string(access.DownShare), string(access.DownClosed))},
	}
}

func (s *Settings) auditOptions() []setting.Option {
	o := &s.Audit
	return []setting.Option{
		{Key: "audit.file", Help: "record every call and decision in this file; see \"attache audit\"", Value: setting.Path(&o.File)},
		{Key: "audit.arguments", Help: "how much of the arguments is recorded: a digest, all except values that look secret, or all except known secrets",
			Value: setting.Choice(&o.Arguments, string(audit.Digest), string(audit.Redacted), string(audit.Full))},
		{Key: "audit.required", Help: "refuse calls that cannot be recorded", Value: setting.Bool(&o.Required)},
		{Key: "audit.max_size", Help: "how large the file may become before it is renamed and a new one is started", Value: setting.Size(&o.MaxSize, 4<<10, 1<<40)},
	}
}

func (s *Settings) otherOptions() []setting.Option {
	return []setting.Option{
		{Key: "arguments", Help: "which arguments of tools are filled, pinned or forbidden; without this key: workspace is filled", Value: rules.Arguments(&s.Arguments)},
		{Key: "rewrite", Help: "what the client sees and calls: hide, rename and describe tools, and set arguments", Value: rules.Rewrite(&s.Rewrite)},
		{Key: "trace.propagate", Value: setting.Bool(&s.Trace.Propagate),
			Help: "make each call a child span of its trace in the request to the server; the OTEL_ variables configure the export of spans"},
		{Key: "limits.hold", Help: "a frame larger than this is streamed and not read", Value: setting.Size(&s.Limits.Hold, 4<<10, 1<<30)},
		{Key: "limits.in_flight", Help: "how many calls may be in flight before the client has to wait", Value: setting.Count(&s.Limits.InFlight, 1, 10_000_000)},
		{Key: "record", Flag: "record", Hint: "FILE", Help: "record the session, scrubbed of secrets, for \"attache replay\"", Value: setting.Path(&s.Record)},
		{Key: "stdout_noise", Flag: "stdout-noise", Hint: "WHAT", Help: "drop or forward what the server writes to stdout that is not JSON", Value: setting.Choice(&s.StdoutNoise, "drop", "forward")},
		{Key: "log.level", Flag: "log-level", Hint: "LEVEL", Help: "debug, info, warn or error", Value: setting.Choice(&s.Log.Level, "debug", "info", "warn", "error")},
		{Key: "log.format", Flag: "log-format", Hint: "FORMAT", Help: "text or json", Value: setting.Choice(&s.Log.Format, "text", "json")},
		{Key: "dry_run", Flag: "dry-run", Help: "decide and log everything, change nothing", Value: setting.Bool(&s.DryRun)},
	}
}

// source reads --policy: a directory, or a URL if it contains "://". It clears the other one,
// because the flag takes precedence over the file.
type source struct{ policy *PolicySettings }

func (v source) Set(s, base string) error {
	value, other := setting.Path(&v.policy.Dir), &v.policy.URL
	if strings.Contains(s, "://") {
		value, other = policyURL(&v.policy.URL), &v.policy.Dir
	}
	err := value.Set(s, base)
	if err == nil {
		*other = ""
	}
	return err
}

func (v source) String() string         { return v.policy.Dir + v.policy.URL }
func (v source) Schema() map[string]any { return nil }
