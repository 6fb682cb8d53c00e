// Package config reads the settings from flags, variables and the configuration file, and
// says where each value comes from and what is wrong with it.
package config

import (
	"path/filepath"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/setting"
	"github.com/attache-mcp/attache/middleware/arguments"
	"github.com/attache-mcp/attache/middleware/capture"
	"github.com/attache-mcp/attache/middleware/rewrite"
	"github.com/attache-mcp/attache/sessionstate/identity"
)

// Settings are the configuration file, the environment and the flags taken together, with
// defaults for the rest. The fields are in the order of the keys; see [Options].
type Settings struct {
	Server    ServerSettings
	Session   SessionSettings
	Identity  IdentitySettings
	Operator  OperatorSettings
	Policy    PolicySettings
	Briefing  BriefingSettings
	Arguments []arguments.Rule // nil: no key, the built-in rule holds; empty: no rules
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
	// Record is the file the session is recorded to, empty for none.
	Record string
	// StdoutNoise is "drop" or "forward".
	StdoutNoise string
	// DryRun decides and logs everything and changes nothing.
	DryRun bool

	// File is the configuration file that was read, empty if there is none.
	File string
	// Included are the files on this machine that it includes.
	Included []string
	// Servers are the entries for single servers, in the order of the file.
	Servers []Server
	// Applied are the entries of Servers that are for this server: at most one of each file.
	Applied []Server

	// Warnings are about settings that are valid but probably a mistake.
	Warnings setting.Problems

	origins map[string]setting.Origin
	outside []string // the variables of a server.url outside of servers; see RemoteVariables
}

// ServerSettings configure the name, environment and command of the wrapped server.
type ServerSettings struct {
	Name string // empty: see [servername.Of]
	Env  map[string]string
	// Command starts the server where attache serve is given none.
	Command []string
	// PassMessaging leaves the server the variables with which it can write into the client's
	// conversation.
	PassMessaging bool
	Remote        RemoteSettings
	Restart       RestartSettings
}

// SessionSettings hold the operator's facts about the session, and where attache looks for
// others.
type SessionSettings struct {
	ID, Workspace, WorkspaceID string // empty: not known from the operator
	Trust                      string // "direct" or "sandboxed"
	TTL                        time.Duration
	EnvPrefixes                []string
	Meta                       MetaSettings
	HostEnv                    HostEnvSettings
	Roots, GitRoot             bool
}

// MetaSettings say where in _meta to look.
type MetaSettings struct {
	Workspace, Conversation [][]string // paths into objects, each element a literal key
}

// HostEnvSettings name the variables that hosts set for the servers they start.
type HostEnvSettings struct {
	Session, Workspace []string
}

// IdentitySettings configure how a credential becomes a principal.
type IdentitySettings struct {
	KeysFile   string // absolute; need not exist
	MetaAPIKey bool
	MetaToken  bool
	Cache      time.Duration
	KeyPrefix  string
	TokenFile  string                // absolute; empty for none. See [assembly.ownToken].
	JWT        identity.TokenOptions // without an issuer no token is accepted
	Patience   time.Duration         // see [capture.Options]; no option
}

// PolicySettings say where policies come from. At most one of Dir and URL is set.
type PolicySettings struct {
	Dir, URL, Scope string
	Timeout         time.Duration
	TokenEnv        string // a variable's name, empty for the session's own key
}

// BriefingSettings configure how the policies reach the model.
type BriefingSettings struct {
	Channels   []string // of "response" and "instructions"
	OncePer    string   // "session" or "server"
	Structured string   // "auto", "member", "text-only" or "defer"
	Wait       time.Duration
	MaxBytes   int
}

// LimitSettings bound memory.
type LimitSettings struct {
	Hold     int64 // bytes of a frame that are held; larger ones stream
	InFlight int
}

// LogSettings say what goes to stderr.
type LogSettings struct {
	Level  string // "debug", "info", "warn" or "error"
	Format string // "text" or "json"
}

// DefaultSettings returns the settings without a file, variables and flags. dir is where the
// configuration file is or would be.
func DefaultSettings(dir string) *Settings {
	s := &Settings{
		Session: SessionSettings{
			Trust:       "direct",
			TTL:         12 * time.Hour,
			EnvPrefixes: []string{setting.Prefix},
			Meta:        MetaSettings{Workspace: capture.DefaultWorkspaceKeys(), Conversation: capture.DefaultConversationKeys()},
			HostEnv: HostEnvSettings{
				Session:   []string{"CLAUDE_CODE_SESSION_ID"},
				Workspace: []string{"CLAUDE_PROJECT_DIR"},
			},
			Roots: true,
		},
		Server:   ServerSettings{Remote: RemoteSettings{Connect: 30 * time.Second, OAuth: defaultOAuth()}, Restart: RestartSettings{On: "crash", Hold: 10 * time.Second, Notice: true}},
		Identity: IdentitySettings{Cache: time.Minute, KeyPrefix: "atk", JWT: defaultJWT()},
		Policy:   PolicySettings{Timeout: 2 * time.Second},
		Briefing: BriefingSettings{
			Channels:   []string{"response"},
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

// Origin returns where the value of key came from, such as "session.workspace", or
// where the rule of that name is, such as "servers.git.arguments[0]".
func (s *Settings) Origin(key string) setting.Origin { return s.origins[key] }

// Inert returns settings with which layers decide in the same way, and write nothing outside
// this process.
func Inert(s *Settings) *Settings {
	copied := *s
	copied.DryRun, copied.Record = false, ""
	return &copied
}
