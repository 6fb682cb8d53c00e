package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/attache-mcp/attache"

// A law lists the packages of this module that a package may import, and gives the reason. A package without a
// law has no place yet: add it here and, if it is a new part of attache, to docs/design.md.
type law struct {
	pkg     string // below the module
	imports []string
	why     string
}

const (
	// anything, as the one import, allows all packages.
	anything = "..."
	// library allows all packages outside cmd.
	library = "library"
	// shared allows what layers have in common.
	shared = "shared by layers"
	// rooms is where the packages of the program are.
	rooms = "cmd/attache/internal/"
)

// allows reports whether the package may import another package of the module.
func (l law) allows(other string) bool {
	return slices.Contains(l.imports, other) || slices.Contains(l.imports, anything) ||
		slices.Contains(l.imports, library) && !strings.HasPrefix(other, "cmd/") ||
		slices.Contains(l.imports, shared) && slices.Contains(sharedByLayers(), other)
}

func sharedByLayers() []string {
	return []string{"middleware", "middleware/glob", "middleware/toolresult", "proxy/wire", "policy", "sessionstate", "sessionstate/expression"}
}

func importLaw() []law {
	layer := []string{shared}
	return []law{
		{"proxy/wire", []string{"proxy/wire/internal/jsonstring", "proxy/wire/internal/lanes", "proxy/wire/internal/skip", "proxy/internal/room"}, "frames can be read and written without the rest of the module"},
		{"proxy/wire/internal/jsonstring", nil, "it decodes and encodes JSON strings"},
		{"proxy/wire/internal/skip", []string{"proxy/wire/internal/lanes"}, "it reads any JSON"},
		{"proxy/wire/internal/lanes", nil, "it compares eight bytes at once"},
		{"internal/fetch", nil, "it fetches any document with the same checks"},
		{"internal/headername", nil, "it validates any name"},
		{"internal/kept", nil, "it shortens any text"},
		{"internal/loopback", nil, "it recognises names of this machine"},
		{"internal/testkit", nil, "it serves any test"},
		{"proxy/child", nil, "it starts and stops any process"},
		{"policy", nil, "policies know no JSON-RPC: other programs render them too"},
		{"sessionstate/textfile", nil, "it reads any file with the same checks"},
		{"sessionstate", nil, "the facts of a session do not depend on their sources"},
		{"internal/relayed", []string{"proxy/wire"}, "a call depends neither on its layers nor on its relay"},
		{"middleware", []string{"internal/kept", "internal/relayed", "proxy/wire"}, "the contract is about messages, not about the code that handles them"},
		{"middleware/glob", nil, "a pattern of names knows neither messages nor rules"},
		{"proxy", []string{"internal/relayed", "middleware", "proxy/wire", "proxy/internal/array", "proxy/internal/asks", "proxy/internal/callid", "proxy/internal/flow", "proxy/internal/hangup", "proxy/internal/inflight", "proxy/internal/noise", "proxy/internal/revive", "proxy/internal/tasks"}, "the relay knows neither policies nor sessions"},
		{"proxy/internal/array", []string{"proxy/wire"}, "it assembles arrays from any members"},
		{"proxy/internal/asks", []string{"proxy/wire"}, "it matches the relay's own requests with their replies"},
		{"proxy/internal/noise", nil, "it counts lines that are not messages"},
		{"proxy/internal/revive", []string{"internal/relayed", "proxy/internal/asks", "proxy/internal/callid", "proxy/internal/flow", "proxy/internal/tasks", "proxy/wire"}, "a restart does not depend on what the relay does with messages"},
		{"proxy/internal/headertext", nil, "one place encodes and decodes header values"},
		{"proxy/internal/httpstatus", nil, "the statuses for clients do not depend on the transport"},
		{"proxy/internal/inanswer", nil, "the request that a message belongs to does not depend on the transport"},
		{"proxy/internal/callid", []string{"internal/kept", "proxy/wire"}, "it compares the ids of any requests"},
		{"proxy/internal/flow", []string{"proxy/wire"}, "it queues any bytes"},
		{"proxy/internal/inflight", []string{"internal/relayed", "proxy/internal/array", "proxy/internal/callid", "proxy/internal/tasks", "proxy/wire"}, "the calls in flight do not depend on what the relay does with them"},
		{"proxy/internal/hangup", nil, "the end of a client does not depend on messages"},
		{"proxy/internal/room", nil, "it lends memory for any message"},
		{"proxy/internal/tasks", nil, "it counts running work of any kind"},
		{"proxy/front", []string{"internal/kept", "proxy", "proxy/front/internal/abandoned", "proxy/front/internal/accept", "proxy/front/internal/answer", "proxy/front/internal/bare", "proxy/front/internal/body", "proxy/front/internal/inbox", "proxy/front/internal/limit", "proxy/front/internal/mirrored", "proxy/front/internal/origin", "proxy/front/internal/outbox", "proxy/front/internal/rename", "proxy/front/internal/revision", "proxy/front/internal/taskkey", "proxy/front/sessions", "proxy/internal/callid", "proxy/internal/inanswer", "proxy/internal/tasks", "proxy/wire"}, "it connects clients with relays, and does not know what relays do"},
		{"proxy/front/internal/abandoned", nil, "it remembers any ids"},
		{"proxy/front/internal/accept", nil, "it reads headers"},
		{"proxy/front/internal/answer", []string{"proxy/front/internal/accept", "proxy/front/internal/bare", "proxy/front/internal/event", "proxy/front/internal/outbox", "proxy/internal/httpstatus", "proxy/wire"}, "it writes any stream, and knows neither sessions nor relays"},
		{"proxy/front/internal/bare", nil, "it writes any response"},
		{"proxy/front/internal/body", []string{"proxy/front/internal/limit", "proxy/internal/room", "proxy/wire"}, "it reads any body"},
		{"proxy/front/internal/event", nil, "it writes any event"},
		{"proxy/front/internal/inbox", []string{"proxy/wire"}, "it passes on any message"},
		{"proxy/front/internal/limit", nil, "it counts"},
		{"proxy/front/internal/origin", []string{"internal/loopback"}, "it reads headers"},
		{"proxy/front/internal/outbox", []string{"proxy/front/internal/event", "proxy/internal/room", "proxy/wire"}, "it holds lines for any response"},
		{"proxy/front/internal/revision", nil, "how revisions differ does not depend on a request"},
		{"proxy/front/internal/rename", []string{"proxy/wire"}, "it edits any message"},
		{"proxy/front/internal/taskkey", []string{"internal/kept", "proxy/wire"}, "it reads any message"},
		{"proxy/front/internal/mirrored", []string{"proxy/internal/headertext", "proxy/wire"}, "it compares headers with a body"},
		{"proxy/front/sessions", []string{"proxy/internal/revive", "proxy/wire"}, "the saved parts of a session do not depend on the store"},
		{"proxy/remote/internal/outbox", []string{"proxy/internal/room", "proxy/wire"}, "it passes on lines from any response"},
		{"proxy/remote/internal/eventstream", []string{"proxy/remote/internal/outbox"}, "it reads any stream of events"},
		{"proxy/remote/internal/dial", nil, "it connects to any host"},
		{"proxy/remote/internal/ownconn", nil, "it sends any request"},
		{"proxy/remote", []string{"internal/headername", "proxy/remote/internal/dial", "proxy/remote/internal/eventstream", "proxy/remote/internal/outbox", "proxy/remote/internal/ownconn", "proxy/wire", "proxy/mempipe", "proxy/internal/callid", "proxy/internal/headertext", "proxy/internal/httpstatus", "proxy/internal/inanswer", "proxy/internal/revive"}, "to the relay a remote server is a stream of lines"},
		{"proxy/record", nil, "a recording is lines in a file"},
		{"proxy/replay", []string{"proxy", "proxy/record", "proxy/mempipe"}, "a recording is played through the relay itself, and by a command as well as in tests, so without package testing"},
		{"proxy/mempipe", nil, "it is a pipe in memory"},
		{"proxy/proxytest", []string{"middleware", "proxy", "proxy/record", "proxy/replay", "proxy/mempipe"}, "the harness uses the relay like any program that embeds it"},

		{"middleware/toolresult", []string{"middleware", "proxy/wire"}, "it adds any text to a tool result"},
		{"middleware/capture", layer, "a layer meets others only in the chain"},
		{"middleware/arguments", []string{shared, "middleware/arguments/internal/constraint"}, "a layer meets others only in the chain"},
		{"middleware/arguments/internal/constraint", []string{"proxy/wire"}, "it reads any schema"},
		{"middleware/rewrite", layer, "a layer meets others only in the chain"},
		{"middleware/briefing", layer, "a layer meets others only in the chain"},
		{"middleware/access", append([]string{"internal/kept"}, layer...), "a layer meets others only in the chain"},
		{"middleware/audit", []string{shared, "middleware/audit/chain"}, "a layer meets others only in the chain, and has its own log"},
		{"middleware/teams", []string{shared, "sessionstate/teams"}, "a layer meets others only in the chain, and its messages are in the registry"},
		{"middleware/dryrun", []string{"internal/relayed", "middleware", "proxy/wire"}, "it runs any layer, so it must not know a particular one"},
		{"middleware/announce", []string{"middleware", "proxy/wire"}, "the subscriptions of a client do not depend on the session"},
		{"middleware/audit/chain", []string{"sessionstate/filelock"}, "it chains any records"},
		{"middleware/trace", layer, "a layer meets others only in the chain"},
		{"middleware/trace/otlp", nil, "it sends spans and metrics of any source"},
		{"middleware/trace/otlp/otlptest", nil, "it is a collector for any sender"},

		{"policy/filesource", []string{"policy", "sessionstate/textfile"}, "a source is an implementation of policy.Source"},
		{"policy/httpsource", []string{"internal/fetch", "internal/loopback", "policy"}, "a source is an implementation of policy.Source"},
		{"policy/policytest", []string{"policy"}, "the suite tests any Source, so it must not know a particular one"},
		{"sessionstate/filelock", nil, "it locks any file"},
		{"sessionstate/identity", []string{"internal/fetch", "internal/loopback", "sessionstate", "sessionstate/filelock", "sessionstate/textfile"}, "it turns credentials into principals"},
		{"sessionstate/keystore", []string{"sessionstate", "sessionstate/database", "sessionstate/identity"}, "it stores keys, and does not know what they permit"},
		{"sessionstate/ratestore", []string{"sessionstate", "sessionstate/database"}, "it is an implementation of sessionstate.Lender"},
		{"sessionstate/expression", []string{"sessionstate"}, "an expression reads facts of a session and a call, not messages"},
		{"sessionstate/database", nil, "it opens any shared database with the same checks"},
		{"sessionstate/database/pgserver", nil, "it starts a PostgreSQL server for any data"},
		{"sessionstate/database/pgtest", []string{"sessionstate/database/pgserver"}, "it starts a PostgreSQL server for any test"},
		{"sessionstate/database/databasetest", []string{"sessionstate/database"}, "tests of all stores connect in one way"},
		{"sessionstate/turnstore", []string{"sessionstate", "sessionstate/database"}, "it is an implementation of sessionstate.Turns"},
		{"sessionstate/teams", []string{"sessionstate", "sessionstate/database", "sessionstate/filelock"}, "its rules do not depend on the tools that use it"},
		{"sessionstate/statetest", []string{"sessionstate"}, "the suite tests any Turns, so it must not know a particular one"},

		{"cmd/attache", []string{anything}, "only the program combines everything"},
		{rooms + "cli", []string{"sessionstate/textfile"}, "errors, exit statuses and words are the same for every command"},
		{rooms + "term", []string{rooms + "cli", "middleware", "sessionstate"}, "it formats output for any command"},
		{rooms + "clientfile", []string{rooms + "cli", "sessionstate/textfile"}, "it replaces any file"},
		{rooms + "mcpclient", nil, "where clients keep their files is not about messages"},
		{rooms + "clientconfig", []string{rooms + "clientfile", rooms + "mcpclient"}, "the files of clients are not about messages"},
		{rooms + "trust", []string{"policy", "policy/filesource", "sessionstate/textfile", rooms + "cli"}, "trust in workspaces is not about messages"},
		{rooms + "wrap", []string{rooms + "cli", rooms + "config", rooms + "setting", rooms + "filecheck", rooms + "clientconfig", rooms + "mcpclient", rooms + "clientfile", rooms + "term", "proxy/record", "proxy/wire"}, "putting attache in front of servers takes their files and attache's flags, and no session"},
		{rooms + "auditheads", []string{"middleware/audit/chain", "sessionstate/database"}, "it stores the ends of files with any records"},
		{rooms + "auditlog", []string{rooms + "auditheads", rooms + "cli", rooms + "term", "middleware/audit/chain"}, "it reads the records of any writer"},
		{rooms + "inject", []string{library, rooms + "assembly", rooms + "cli", rooms + "clientconfig", rooms + "clientfile", rooms + "config", rooms + "term"}, "it computes the facts of a session without running one"},
		{rooms + "replays", []string{library, rooms + "assembly", rooms + "cli", rooms + "config", rooms + "setting", rooms + "term"}, "it plays recordings through what assembly makes"},
		{rooms + "servername", nil, "the name of a server depends only on its command"},
		{rooms + "keys", []string{library, rooms + "cli", rooms + "config", rooms + "term"}, "it creates and prints keys of any store"},
		{rooms + "policies", []string{library, rooms + "assembly", rooms + "cli", rooms + "config", rooms + "logging", rooms + "term"}, "it asks the source that assembly makes"},
		{rooms + "clientprocess", nil, "the parent process is not about messages"},
		{rooms + "setting", []string{rooms + "cli", "sessionstate/expression", "sessionstate/textfile"}, "it reads values for any option"},
		{rooms + "rules", []string{"middleware/access", "middleware/arguments", "middleware/glob", "middleware/rewrite", "sessionstate", "sessionstate/expression", rooms + "cli", rooms + "setting"}, "it reads lists of rules, whatever file or entry they are in"},
		{rooms + "config", []string{library, rooms + "rules", rooms + "setting", rooms + "cli", rooms + "include", rooms + "clientconfig", rooms + "servername"}, "settings use types of the library, and other packages act on them"},
		{rooms + "filecheck", []string{library, rooms + "cli", rooms + "config", rooms + "setting"}, "every command checks files in the same way"},
		{rooms + "include", []string{"internal/fetch", "sessionstate/textfile"}, "it verifies the origin of any fetched file"},
		{rooms + "recipes", []string{rooms + "cli", rooms + "clientfile", rooms + "config", "sessionstate/textfile"}, "a recipe is a part of a configuration file"},
		{rooms + "status", []string{"middleware", "middleware/glob", "proxy/wire", rooms + "cli", "sessionstate/filelock"}, "a report of a running attache is written and read without running one"},
		{rooms + "logging", []string{"middleware", "proxy/record", rooms + "cli", rooms + "config", rooms + "term"}, "the log knows the secrets, and not its users"},
		{rooms + "telemetry", []string{"middleware/trace", "middleware/trace/otlp", rooms + "cli"}, "it exports any spans and metrics"},
		{rooms + "login", []string{"internal/loopback", "proxy/remote", "sessionstate/textfile", rooms + "cli", rooms + "term"}, "tokens do not depend on settings or messages"},
		{rooms + "login/logintest", nil, "an authorization server knows nothing of its clients"},
		{rooms + "remoteserver", []string{"internal/loopback", "proxy/remote", "sessionstate/textfile", rooms + "cli", rooms + "config", rooms + "login"}, "a remote server is reached the same way by every command"},
		{rooms + "assembly", []string{library, rooms + "auditheads", rooms + "cli", rooms + "config", "cmd/internal/fronts", rooms + "setting", rooms + "filecheck", rooms + "clientprocess", rooms + "logging", rooms + "status", rooms + "trust"}, "it makes layers of settings, and neither runs nor prints them"},
		{rooms + "wake", []string{library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "assembly"}, "it wakes a session for any message"},
		{rooms + "stores", []string{library, rooms + "assembly", rooms + "cli", rooms + "config"}, "it manages the tables of all parts, and reads none"},
		{rooms + "agents", []string{library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "assembly", rooms + "term"}, "it runs the operator's commands for any session"},
		{rooms + "teamserver", []string{library, rooms + "agents"}, "it is an ordinary server that uses the registry and starts agents"},
		{rooms + "session", []string{rooms + "wake", rooms + "agents", rooms + "teamserver", library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "assembly", rooms + "logging", rooms + "remoteserver", rooms + "status", rooms + "telemetry", rooms + "term"}, "it runs what assembly makes"},
		{"cmd/internal/fronts", []string{"proxy/front/sessions", "sessionstate/database", "sessionstate/filelock"}, "it stores sessions of any server"},
		{rooms + "serve", []string{library, "cmd/internal/fronts", rooms + "cli", rooms + "config", rooms + "assembly", rooms + "logging", rooms + "remoteserver", rooms + "session", rooms + "status", rooms + "telemetry"}, "it runs many sessions like session runs one"},
		{rooms + "inspect", []string{"proxy/child", "proxy/remote", "proxy/wire", rooms + "cli"}, "it asks a server for its tools, for any command"},
		{rooms + "explain", []string{library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "assembly", rooms + "inspect", rooms + "remoteserver", rooms + "status", rooms + "term"}, "it plays a call through the layers of a session, and starts none"},
		{rooms + "doctor", []string{library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "filecheck", rooms + "assembly", rooms + "clientconfig", rooms + "mcpclient", rooms + "inspect", rooms + "remoteserver", rooms + "term", rooms + "trust"}, "it looks at everything, and changes nothing"},
		{rooms + "overview", []string{rooms + "cli", rooms + "clientconfig", rooms + "mcpclient", rooms + "config", rooms + "remoteserver", rooms + "status"}, "it shows the state and changes nothing"},
		{rooms + "demo", []string{library, rooms + "term"}, "the demo needs no configuration"},
		{rooms + "attachetest", []string{"internal/testkit", rooms + "cli", rooms + "config", "sessionstate/identity"}, "tests of several packages write the same configurations and tokens"},
		{"cmd/attache-bench", []string{"cmd/attache-bench/internal/httpclient", "cmd/attache-bench/internal/load", "cmd/attache-bench/internal/machine", "cmd/attache-bench/internal/soak"}, "it measures the program from outside"},
		{"cmd/attache-bench/internal/httpclient", nil, "it is a client for measurements, and measures nothing itself"},
		{"cmd/attache-bench/internal/machine", nil, "it reads the resource use of processes"},
		{"cmd/attache-bench/internal/soak", []string{"cmd/attache-bench/internal/machine"}, "it uses the program from outside"},
		{"cmd/attache-bench/internal/load", []string{library, "cmd/attache-bench/internal/machine", "cmd/internal/fronts"}, "it uses the program's stores like sessions"},
		{"packaging", nil, "packages are made from the built program"},
	}
}

func TestImportLaw(t *testing.T) {
	laws := map[string]law{}
	for _, l := range importLaw() {
		laws[l.pkg] = l
	}
	for _, p := range packages(t) {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		l, ok := laws[name]
		if !ok {
			t.Errorf("%s: no law says what it may import: add a row to importLaw", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			inner, ours := strings.CutPrefix(imported, module+"/")
			if ours && !l.allows(inner) {
				t.Errorf("%s imports %s: %s", name, inner, l.why)
			}
		}
		for _, allowed := range l.imports {
			all := slices.Contains([]string{anything, library, shared}, allowed) || runtime.GOOS != "linux" // which has every file
			if !all && !slices.Contains(p.Imports, module+"/"+allowed) {
				t.Errorf("%s does not import %s any more: take it out of importLaw", name, allowed)
			}
		}
		delete(laws, name)
	}
	for name := range laws {
		t.Errorf("there is no package %s any more: take it out of importLaw", name)
	}
}

// Packages that only some packages may import, and the reason.
func TestForeignImports(t *testing.T) {
	all := packages(t)
	for _, rule := range []struct {
		foreign string
		homes   []string
		why     string
	}{
		{"github.com/tidwall/gjson", []string{"middleware", "sessionstate/expression"}, "its paths mean more than they say; the catalogue reads lists with constant ones, and expressions use none"},
		{"github.com/tidwall/sjson", nil, "it answers invalid JSON without an error"},
		{"github.com/lmittmann/tint", []string{rooms + "logging", rooms + "demo"}, "a library does not choose how logs look"},
		{"github.com/spf13/cobra", []string{"cmd/attache", rooms + "config", rooms + "setting"}, "a library has no command line"},
		{"github.com/modelcontextprotocol/go-sdk/mcp", []string{rooms + "demo", rooms + "teamserver"}, "a frame is never decoded into its types; the demo and the teams tools are servers"},
		{"github.com/goccy/go-yaml", []string{rooms + "config", rooms + "rules", rooms + "setting", rooms + "recipes", "policy/filesource", "sessionstate/identity", "sessionstate/textfile"}, "YAML is for the files people write"},
		{"cel.dev/cel-go", []string{"sessionstate/expression"}, "one place says what an expression may read, and what it may cost"},
		{"github.com/fsnotify/fsnotify", []string{rooms + "session"}, "one place notices changes, and says what they mean"},
		{"net/http", []string{"internal/fetch", "cmd/attache-bench/internal/soak", "cmd/attache-bench", "cmd/attache-bench/internal/httpclient", rooms + "include", rooms + "serve", rooms + "config", rooms + "login", rooms + "login/logintest", rooms + "remoteserver", "proxy/front", "proxy/front/internal/answer", "proxy/front/internal/bare", "proxy/front/internal/mirrored", "proxy/remote", "proxy/remote/internal/ownconn", "middleware/trace/otlp", "middleware/trace/otlp/otlptest", "policy/httpsource", "sessionstate/identity"}, "no network unless it is configured"},
		{"golang.org/x/oauth2", []string{rooms + "login"}, "one place holds tokens of other servers"},
		{"github.com/zalando/go-keyring", []string{rooms + "login"}, "one place asks the system's key ring"},
		{"modernc.org/sqlite", []string{"sessionstate/database"}, "one place opens the databases that processes share"},
		{"github.com/jackc/pgx/v5", []string{"sessionstate/database", "sessionstate/database/pgserver"}, "one place opens the databases that processes share, and one makes those of tests"},
		{"database/sql", []string{"sessionstate/database", "sessionstate/database/pgserver", "sessionstate/keystore", "sessionstate/turnstore", "sessionstate/teams", "cmd/internal/fronts"}, "only what processes share is kept in SQL"},
		{"github.com/tailscale/hujson", []string{"cmd/attache/internal/clientconfig"}, "JSON with comments is for the files of clients"},
		{"github.com/pelletier/go-toml/v2", []string{"cmd/attache/internal/clientconfig"}, "TOML is for the files of clients"},
		{"os/exec", []string{"cmd/attache-bench/internal/soak", "proxy/child", rooms + "login", "cmd/attache-bench", "cmd/attache-bench/internal/machine", "sessionstate/database/pgserver"}, "one place starts processes, and leaves none behind; a browser alone goes on, and a test has a server end with it"},
		{"log", nil, "logs go through a slog.Logger that was given"},
		{"C", nil, "builds need no compiler for C"},
	} {
		for _, p := range all {
			name := strings.TrimPrefix(p.ImportPath, module+"/")
			for _, imported := range p.Imports {
				if isPartOf(imported, rule.foreign) && !slices.Contains(rule.homes, name) {
					t.Errorf("%s imports %s: %s", name, imported, rule.why)
				}
			}
		}
	}
}

// isPartOf reports whether a package is the foreign one or below its path. In the standard library a package
// below another, such as log/slog, is not part of it.
func isPartOf(imported, foreign string) bool {
	host, _, _ := strings.Cut(foreign, "/")
	return imported == foreign || strings.Contains(host, ".") && strings.HasPrefix(imported, foreign+"/")
}

// Only the main packages use the globals of the process: all other packages get them as options.
func TestGlobals(t *testing.T) {
	forbidden := map[string][]string{
		"os":   {"Args", "Getenv", "LookupEnv", "Environ", "Setenv", "Unsetenv", "ExpandEnv", "Stdin", "Stdout", "Stderr", "Exit", "Chdir"},
		"slog": {"Default", "SetDefault", "Debug", "Info", "Warn", "Error", "Log", "DebugContext", "InfoContext", "WarnContext", "ErrorContext"},
		"fmt":  {"Print", "Println", "Printf", "Scan", "Scanln", "Scanf"},
	}
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, module+"/cmd/") && !strings.Contains(p.ImportPath, "/internal/") {
			continue
		}
		for _, file := range p.GoFiles {
			path := filepath.Join(p.Dir, file)
			for pkg, names := range forbidden {
				for _, use := range uses(t, path, pkg, names) {
					t.Errorf("%s: only package main touches the process's globals: take it as an option", use)
				}
			}
		}
	}
}

// uses returns where the file uses pkg.name for one of the names, and where it has an init function.
func uses(t *testing.T, path, pkg string, names []string) []string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	check(t, err)
	var found []string
	ast.Inspect(f, func(n ast.Node) bool {
		if fn, ok := n.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, fset.Position(fn.Pos()).String()+": init")
		}
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == pkg && slices.Contains(names, s.Sel.Name) {
			found = append(found, fset.Position(s.Pos()).String()+": "+pkg+"."+s.Sel.Name)
		}
		return true
	})
	return found
}

// Packages assign to no variable of theirs, so that sessions in one process share nothing by accident. A
// variable with methods may still change, such as a sync.Pool.
func TestVariablesAreConstant(t *testing.T) {
	for _, p := range packages(t) {
		variables := map[string]bool{}
		var files []*ast.File
		fset := token.NewFileSet()
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			check(t, err)
			files = append(files, f)
			for name, object := range f.Scope.Objects {
				variables[name] = variables[name] || object.Kind == ast.Var
			}
		}
		for _, f := range files {
			for _, id := range assigned(f) {
				if variables[id.Name] {
					t.Errorf("%s: %s is a variable of the package, and changes: keep it in a value", fset.Position(id.Pos()), id.Name)
				}
			}
		}
	}
}

// assigned returns where functions of the file assign to a name that no function declares, or to a part of it.
func assigned(f *ast.File) (found []*ast.Ident) {
	outside := map[*ast.Ident]bool{}
	for _, id := range f.Unresolved {
		outside[id] = true
	}
	add := func(to ast.Expr) {
		for {
			switch x := to.(type) {
			case *ast.SelectorExpr:
				to = x.X
			case *ast.IndexExpr:
				to = x.X
			case *ast.StarExpr:
				to = x.X
			case *ast.ParenExpr:
				to = x.X
			case *ast.Ident:
				if outside[x] || x.Obj != nil && f.Scope.Objects[x.Name] == x.Obj {
					found = append(found, x)
				}
				return
			default:
				return
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.AssignStmt:
			for _, to := range s.Lhs {
				add(to)
			}
		case *ast.IncDecStmt:
			add(s.X)
		}
		return true
	})
	return found
}

// goPackage has the output of go list for a package.
type goPackage struct {
	Dir, ImportPath  string
	GoFiles, Imports []string
}

// packages returns all packages of the module on this system.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,GoFiles,Imports", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			if len(all) < 5 {
				t.Fatalf("go list found %d packages", len(all))
			}
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
