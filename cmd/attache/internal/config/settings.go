// Package config reads the settings from flags, environment variables and the configuration file.
// It records the origin of each value and reports mistakes.
package config

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/access"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// Settings combine the configuration file, the environment, the flags and the defaults. The fields
// are in the order of the keys; see [Options].
type Settings struct {
	Server    ServerSettings
	Session   SessionSettings
	Identity  IdentitySettings
	Operator  OperatorSettings
	Policy    PolicySettings
	Briefing  BriefingSettings
	Arguments []arguments.Rule // nil: the key is not set, and the built-in rule applies; empty: no rules
	Rewrite   []rewrite.Rule
	Access    AccessSettings
	Audit     AuditSettings
	Trace     TraceSettings
	Limits    LimitSettings
	Log       LogSettings
	Inject    InjectSettings
	Serve     ServeSettings
	Store     StoreSettings
	Teams     TeamsSettings
	Agents    map[string]Agent

	// APIKeyFile holds the session's API key; empty for none. See [APIKey].
	APIKeyFile string
	// Record is the file that the session is recorded to, empty for none.
	Record string
	// StdoutNoise is "drop" or "forward".
	StdoutNoise string
	// DryRun makes layers decide and log, but change nothing.
	DryRun bool

	// File is the configuration file that was read, empty if there is none.
	File string
	// Included are the local files that it includes.
	Included []string
	// Servers are the entries for single servers, in the order of the file.
	Servers []Server
	// Applied are the entries of Servers that apply to this server: at most one from each file.
	Applied []Server

	// Warnings report settings that are valid but probably a mistake.
	Warnings setting.Problems

	sought string // the configuration file that was looked for, empty for none
	// served are the names of all servers that attache serves, sorted. Only [LoadServed] sets it:
	// elsewhere an entry for another server changes nothing.
	served []string

	origins map[string]setting.Origin
	outside []string // the variables of server.url outside servers; see RemoteVariables
}

// ServerSettings configure the name, environment and command of the wrapped server.
type ServerSettings struct {
	Name string // empty: see [servername.Of]
	Env  map[string]string
	// Command starts the server if attache serve is called without a command.
	Command []string
	// PassMessaging passes the server the variables with which it can write into the client's
	// conversation.
	PassMessaging bool
	Remote        RemoteSettings
	Restart       RestartSettings
}

// RestartSettings configure what happens when the server ends during a session.
type RestartSettings struct {
	On     string // "crash" or "never"
	Hold   time.Duration
	Hang   time.Duration // 0 for never
	Retry  []string      // globs of tool names
	Notice bool
}

// SessionSettings hold the facts about the session that the operator sets, and where attache looks
// for others.
type SessionSettings struct {
	ID, Workspace, WorkspaceID string // empty: not set by the operator
	Trust                      string // "direct" or "sandboxed"
	TTL                        time.Duration
	EnvPrefixes                []string
	Meta                       MetaSettings
	HostEnv                    HostEnvSettings
	Roots, GitRoot             bool
}

// MetaSettings name the members of _meta to look at.
type MetaSettings struct {
	Workspace, Conversation [][]string // paths into objects, each element a literal key
}

// HostEnvSettings name the variables that hosts set for the servers they start.
type HostEnvSettings struct {
	Session, Workspace []string
}

// IdentitySettings configure how credentials are verified.
type IdentitySettings struct {
	KeysFile   string // absolute; need not exist
	MetaAPIKey bool
	MetaToken  bool
	Cache      time.Duration
	KeyPrefix  string
	TokenFile  string                // absolute; empty for none. See [assembly.ownToken].
	JWT        identity.TokenOptions // without an issuer no token is accepted
	Patience   time.Duration         // see [capture.Options]; set by tests
}

// PolicySettings configure the source of policies. At most one of Dir and URL is set.
type PolicySettings struct {
	Dir, URL, Scope string
	Timeout         time.Duration
	TokenEnv        string // the name of a variable; empty for the session's API key
}

// BriefingSettings configure how the policies reach the model.
type BriefingSettings struct {
	Channels   []string // of "response" and "instructions"; nil: what the client shows
	OncePer    string   // "session" or "server"
	Structured string   // "auto", "member", "text-only" or "defer"
	Wait       time.Duration
	MaxBytes   int
}

// AccessSettings configure who may call which tool, and how often.
type AccessSettings struct {
	Default string // "allow" or "deny"
	Hide    bool
	Rules   []access.Rule
	Rates   []access.Rate
	// RatesDown says what happens to calls under Rates while the shared database does not answer.
	RatesDown access.Down
}

// Enforces reports whether the rules can refuse a call.
func (a *AccessSettings) Enforces() bool {
	return len(a.Rules) > 0 || len(a.Rates) > 0 || a.Default == string(access.Deny)
}

// AuditSettings configure what is recorded of calls, and where.
type AuditSettings struct {
	File      string // absolute; empty: nothing is recorded
	Arguments string // "digest", "redacted" or "full"
	Required  bool   // refuse calls that cannot be recorded
	MaxSize   int64  // bytes in a file before the next one is started
}

// TraceSettings configure trace context. The OTEL_ variables configure where spans and metrics
// go; see package telemetry.
type TraceSettings struct {
	Propagate bool
}

// LimitSettings bound memory.
type LimitSettings struct {
	Hold     int64 // bytes of a frame that is held; a larger frame is streamed
	InFlight int
}

// LogSettings configure the log on stderr.
type LogSettings struct {
	Level  string // "debug", "info", "warn" or "error"
	Format string // "text" or "json"
}

// A Server is an entry of servers: how a server is recognised, and the settings for that server
// alone. Its rules come before those in the rest of the file, and its other values replace them.
type Server struct {
	Name  string
	Match Match
	From  setting.Origin

	reader    *setting.Reader
	fields    []setting.Field // all fields but match
	variables []string        // see RemoteVariables
	served    bool            // it has a command or an address; see ServedServers
}

// NoFile says that there is no configuration file, and where it was looked for.
func (s *Settings) NoFile() string {
	return strings.TrimSpace("there is no configuration file "+s.sought) + ": the defaults apply"
}

// A Match recognises servers by globs. It matches a server if any of the globs does. An entry
// without globs is for the server of its name.
type Match struct {
	Package []string // the npm or PyPI package, or the image, that the command runs
	Command []string // the program: its name, or its path if the glob has a slash
	URL     []string // the address of a remote server, also if mcp-remote connects to it
}

// DefaultSettings returns the settings without a file, variables and flags. dir is the directory of
// the configuration file, which need not exist.
func DefaultSettings(dir string) *Settings {
	s := &Settings{
		Session: SessionSettings{
			Trust:       "direct",
			TTL:         12 * time.Hour,
			EnvPrefixes: []string{setting.Prefix},
			Meta:        MetaSettings{Workspace: capture.DefaultWorkspaceKeys(), Conversation: capture.DefaultConversationKeys()},
			HostEnv: HostEnvSettings{
				Session:   []string{"CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "QWEN_CODE_SESSION_ID"},
				Workspace: []string{"CLAUDE_PROJECT_DIR"},
			},
			Roots: true,
		},
		Server:   ServerSettings{Remote: RemoteSettings{Connect: 30 * time.Second, OAuth: defaultOAuth()}, Restart: RestartSettings{On: "crash", Hold: 10 * time.Second, Notice: true}},
		Identity: IdentitySettings{Cache: time.Minute, KeyPrefix: "atk", JWT: defaultJWT()},
		Policy:   PolicySettings{Timeout: 2 * time.Second},
		Briefing: BriefingSettings{
			OncePer:    "session",
			Structured: "auto",
			Wait:       2 * time.Second,
			MaxBytes:   16384,
		},
		Access:      AccessSettings{Default: "allow", Hide: true, RatesDown: "share"},
		Audit:       AuditSettings{Arguments: "digest", MaxSize: 64 << 20},
		Limits:      LimitSettings{Hold: 8 << 20, InFlight: 100_000},
		Log:         LogSettings{Level: "info", Format: "text"},
		Teams:       defaultTeams(),
		Serve:       defaultServe(),
		StdoutNoise: "drop",
		origins:     map[string]setting.Origin{},
	}
	if dir != "" {
		s.Identity.KeysFile = filepath.Join(dir, "keys.yaml")
	}
	return s
}

// Origin returns the origin of the value of a key, such as "session.workspace", or of the rule of
// that name, such as "servers.git.arguments[0]".
func (s *Settings) Origin(key string) setting.Origin { return s.origins[key] }

// IsDefaultKeysFile reports whether Identity.KeysFile is the default key file, which need not exist.
func (s *Settings) IsDefaultKeysFile() bool { return s.Origin("identity.keys_file").Default() }

// Inert returns a copy of s with which layers make the same decisions and do not write outside this
// process.
func Inert(s *Settings) *Settings {
	copied := *s
	copied.DryRun, copied.Record = false, ""
	return &copied
}
