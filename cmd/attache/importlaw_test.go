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

// A law says what of this module a package may import, and why just that. A
// package that no law names has no place yet: give it one here and in
// docs/design.md.
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

// allows reports whether the package may import another one of the module.
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
		{"proxy/wire", []string{"proxy/wire/internal/jsonstring", "proxy/wire/internal/lanes", "proxy/internal/room"}, "reading and writing frames is of use without the rest, and nothing may bend it"},
		{"proxy/wire/internal/jsonstring", nil, "a string of JSON means the same wherever it stands"},
		{"proxy/wire/internal/lanes", nil, "eight bytes are compared at once, whatever they say"},
		{"internal/fetch", nil, "a document is fetched with the same care whatever it says"},
		{"internal/loopback", nil, "a name is of this machine, whatever is asked of it"},
		{"proxy/child", nil, "a process is a process, whatever is said to it"},
		{"policy", nil, "policies know no JSON-RPC: other programs render them too"},
		{"sessionstate/textfile", nil, "a file is read with the same care whatever it says"},
		{"sessionstate", nil, "what is known of a session does not depend on how it was learnt"},
		{"middleware", []string{"proxy/wire"}, "the contract speaks of messages, and of nothing that handles them"},
		{"middleware/glob", nil, "a pattern of names knows neither messages nor rules"},
		{"proxy", []string{"middleware", "proxy/wire", "proxy/internal/array", "proxy/internal/asks", "proxy/internal/callid", "proxy/internal/flow", "proxy/internal/hangup", "proxy/internal/noise", "proxy/internal/revive", "proxy/internal/tasks"}, "the relay knows neither policies nor sessions, so it stays a relay"},
		{"proxy/internal/array", []string{"proxy/wire"}, "the members of an array are put together whatever became of them"},
		{"proxy/internal/asks", []string{"proxy/wire"}, "a request of the relay's own waits for its reply whoever is asked"},
		{"proxy/internal/noise", nil, "lines that are no messages are counted without reading them"},
		{"proxy/internal/revive", []string{"middleware", "proxy/internal/asks", "proxy/internal/callid", "proxy/internal/flow", "proxy/internal/tasks", "proxy/wire"}, "a server is started again the same way whatever the relay does with its messages"},
		{"proxy/internal/headertext", nil, "a text in a header is written and read in one place"},
		{"proxy/internal/httpstatus", nil, "which statuses clients get does not depend on what carries them there"},
		{"proxy/internal/callid", []string{"proxy/wire"}, "an id is compared the same way whatever the request"},
		{"proxy/internal/flow", []string{"proxy/wire"}, "bytes wait and leave the same way whatever they say"},
		{"proxy/internal/hangup", nil, "how long a session outlives its client does not depend on what was said"},
		{"proxy/internal/room", nil, "messages are lent memory, whatever they say"},
		{"proxy/internal/tasks", nil, "the end of a session waits for work of any kind"},
		{"proxy/front", []string{"proxy", "proxy/front/internal/accept", "proxy/front/internal/bare", "proxy/front/internal/event", "proxy/front/internal/inbox", "proxy/front/internal/limit", "proxy/front/internal/mirrored", "proxy/front/internal/origin", "proxy/front/internal/piece", "proxy/front/internal/pulse", "proxy/front/sessions", "proxy/internal/callid", "proxy/internal/httpstatus", "proxy/internal/room", "proxy/internal/tasks", "proxy/wire"}, "it leads clients to relays, and does not know what these do"},
		{"proxy/front/internal/accept", nil, "it reads headers"},
		{"proxy/front/internal/bare", nil, "it writes responses, whatever is in them"},
		{"proxy/front/internal/event", nil, "it writes events, whatever is in them"},
		{"proxy/front/internal/inbox", []string{"proxy/wire"}, "it hands over messages, whatever they say"},
		{"proxy/front/internal/limit", nil, "it counts"},
		{"proxy/front/internal/origin", []string{"internal/loopback"}, "it reads headers"},
		{"proxy/front/internal/piece", nil, "it lends memory"},
		{"proxy/front/internal/pulse", nil, "it looks at the time"},
		{"proxy/front/internal/mirrored", []string{"proxy/internal/headertext", "proxy/wire"}, "headers are compared with a body whoever sent them"},
		{"proxy/front/sessions", []string{"proxy/internal/revive", "proxy/wire"}, "what is kept of a session does not depend on where it is kept"},
		{"proxy/remote/internal/outbox", []string{"proxy/internal/room", "proxy/wire"}, "lines are handed over the same way whatever answer they came in"},
		{"proxy/remote/internal/ownconn", nil, "it sends requests, whatever they ask for"},
		{"proxy/remote", []string{"proxy/remote/internal/outbox", "proxy/remote/internal/ownconn", "proxy/wire", "proxy/mempipe", "proxy/internal/callid", "proxy/internal/headertext", "proxy/internal/httpstatus", "proxy/internal/revive"}, "a remote server is a stream of lines to the relay, whatever is in them"},
		{"proxy/record", nil, "a recording is lines in a file, whoever wrote them"},
		{"proxy/replay", []string{"proxy", "proxy/record", "proxy/mempipe"}, "a recording is played through the relay itself, and by a command as well as in tests, so without package testing"},
		{"proxy/mempipe", nil, "a server in memory knows nothing of what is said to it"},
		{"proxy/proxytest", []string{"middleware", "proxy", "proxy/record", "proxy/replay", "proxy/mempipe"}, "the harness drives the relay as a program of its own would"},

		{"middleware/toolresult", []string{"middleware", "proxy/wire"}, "how a client is shown a text does not depend on what it says"},
		{"middleware/capture", layer, "a layer meets others only in the chain"},
		{"middleware/arguments", layer, "a layer meets others only in the chain"},
		{"middleware/rewrite", layer, "a layer meets others only in the chain"},
		{"middleware/briefing", layer, "a layer meets others only in the chain"},
		{"middleware/access", layer, "a layer meets others only in the chain"},
		{"middleware/audit", []string{shared, "middleware/audit/chain"}, "a layer meets others only in the chain, and keeps its records in a log of its own"},
		{"middleware/teams", []string{shared, "sessionstate/teams"}, "a layer meets others only in the chain, and its messages are in the registry"},
		{"middleware/dryrun", []string{"middleware", "proxy/wire"}, "it runs any layer, so it may know none"},
		{"middleware/announce", []string{"middleware", "proxy/wire"}, "what a client wants to hear depends on no session"},
		{"middleware/audit/chain", []string{"sessionstate/filelock"}, "a log whose lines hang together, whatever they record"},
		{"middleware/trace", layer, "a layer meets others only in the chain"},
		{"middleware/trace/otlp", nil, "spans and metrics are sent whoever made them"},
		{"middleware/trace/otlp/otlptest", nil, "a collector takes them from whoever sends"},

		{"policy/filesource", []string{"policy", "sessionstate/textfile"}, "a source is an implementation of policy.Source"},
		{"policy/httpsource", []string{"internal/fetch", "internal/loopback", "policy"}, "a source is an implementation of policy.Source"},
		{"policy/policytest", []string{"policy"}, "the suite tests any Source, so it may know none"},
		{"sessionstate/filelock", nil, "a file is locked the same way whatever is in it"},
		{"sessionstate/identity", []string{"internal/fetch", "internal/loopback", "sessionstate", "sessionstate/filelock", "sessionstate/textfile"}, "credentials become principals, and nothing else"},
		{"sessionstate/keystore", []string{"sessionstate", "sessionstate/database", "sessionstate/identity"}, "it is where keys are, and nothing of what they open"},
		{"sessionstate/ratestore", []string{"sessionstate", "sessionstate/database"}, "it is an implementation of sessionstate.Lender"},
		{"sessionstate/expression", []string{"sessionstate"}, "an expression reads what is known of a session and a call, and no message"},
		{"sessionstate/database", nil, "a database that processes share is opened with the same care whatever it holds"},
		{"sessionstate/database/pgserver", nil, "a server of PostgreSQL is started whatever is kept there"},
		{"sessionstate/database/pgtest", []string{"sessionstate/database/pgserver"}, "a server of PostgreSQL is started for tests whatever they keep there"},
		{"sessionstate/database/databasetest", []string{"sessionstate/database"}, "tests of every package that keeps something connect in one way"},
		{"sessionstate/turnstore", []string{"sessionstate", "sessionstate/database"}, "it is an implementation of sessionstate.Turns"},
		{"sessionstate/teams", []string{"sessionstate", "sessionstate/database", "sessionstate/filelock"}, "who may create and write to whom does not depend on how it is asked"},
		{"sessionstate/statetest", []string{"sessionstate"}, "the suite tests any Turns, so it may know none"},

		{"cmd/attache", []string{anything}, "it puts everything together, and alone may"},
		{rooms + "cli", []string{"sessionstate/textfile"}, "errors, exit statuses and words are the same for every command"},
		{rooms + "term", []string{rooms + "cli", "middleware", "sessionstate"}, "what a terminal is shown does not depend on who shows it"},
		{rooms + "clientfile", []string{rooms + "cli", "sessionstate/textfile"}, "a file is replaced the same way whatever is in it"},
		{rooms + "clientconfig", []string{rooms + "clientfile"}, "the files of clients have nothing to do with what is relayed"},
		{rooms + "trust", []string{"policy", "policy/filesource", "sessionstate/textfile", rooms + "cli"}, "which workspaces are trusted has nothing to do with what is relayed"},
		{rooms + "wrap", []string{rooms + "cli", rooms + "config", rooms + "setting", rooms + "filecheck", rooms + "clientconfig", rooms + "clientfile", rooms + "term", "proxy/record", "proxy/wire"}, "putting attache in front of servers takes their files and attache's flags, and no session"},
		{rooms + "auditheads", []string{"middleware/audit/chain", "sessionstate/database"}, "where a file ends is noted the same way whatever its records say"},
		{rooms + "auditlog", []string{rooms + "auditheads", rooms + "cli", rooms + "term", "middleware/audit/chain"}, "records are read the same way whatever wrote them"},
		{rooms + "inject", []string{library, rooms + "assembly", rooms + "cli", rooms + "clientconfig", rooms + "clientfile", rooms + "config", rooms + "term"}, "it finds out what a session would know, and runs none"},
		{rooms + "replays", []string{library, rooms + "assembly", rooms + "cli", rooms + "config", rooms + "setting", rooms + "term"}, "it plays recordings through what assembly makes"},
		{rooms + "servername", nil, "a command names its server, whatever is configured for it"},
		{rooms + "keys", []string{library, rooms + "cli", rooms + "config", rooms + "term"}, "keys are made and printed the same way wherever they are kept"},
		{rooms + "policies", []string{library, rooms + "assembly", rooms + "cli", rooms + "config", rooms + "logging", rooms + "term"}, "it asks the source that assembly makes"},
		{rooms + "clientprocess", nil, "which process started this one has nothing to do with what is relayed"},
		{rooms + "setting", []string{rooms + "cli", "sessionstate/expression", "sessionstate/textfile"}, "a value is read the same way whatever it configures"},
		{rooms + "config", []string{library, rooms + "setting", rooms + "cli", rooms + "include", rooms + "clientconfig", rooms + "servername"}, "settings name what the library takes; what is made of them is not theirs"},
		{rooms + "filecheck", []string{library, rooms + "cli", rooms + "config", rooms + "setting"}, "the same files are looked at by every command that checks them"},
		{rooms + "include", []string{"internal/fetch", "sessionstate/textfile"}, "a fetched file is bytes whose origin is proved, whatever they configure"},
		{rooms + "recipes", []string{rooms + "cli", rooms + "clientfile", rooms + "config"}, "a recipe is a piece of a configuration file, which it is put into and taken out of"},
		{rooms + "status", []string{"middleware", "middleware/glob", "proxy/wire", rooms + "cli", "sessionstate/filelock"}, "a report of a running attache is written and read without running one"},
		{rooms + "logging", []string{"middleware", "proxy/record", rooms + "cli", rooms + "config", rooms + "term"}, "a log knows what to keep secret, and nothing of what logs"},
		{rooms + "telemetry", []string{"middleware/trace", "middleware/trace/otlp", rooms + "cli"}, "spans and metrics are exported whatever they are of"},
		{rooms + "login", []string{"internal/loopback", "proxy/remote", "sessionstate/textfile", rooms + "cli", rooms + "term"}, "tokens are got and kept whatever the settings and the messages are"},
		{rooms + "login/logintest", nil, "an authorization server knows nothing of its clients"},
		{rooms + "remoteserver", []string{"proxy/remote", "sessionstate/textfile", rooms + "cli", rooms + "config", rooms + "login"}, "a remote server is reached the same way by every command"},
		{rooms + "assembly", []string{library, rooms + "auditheads", rooms + "cli", rooms + "config", "cmd/internal/fronts", rooms + "setting", rooms + "filecheck", rooms + "clientprocess", rooms + "logging", rooms + "status", rooms + "trust"}, "it makes layers of settings, and neither runs nor prints them"},
		{rooms + "wake", []string{library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "assembly"}, "a session is told of messages whatever they are"},
		{rooms + "stores", []string{library, rooms + "assembly", rooms + "cli", rooms + "config"}, "it looks after the tables of every part, and uses none"},
		{rooms + "agents", []string{library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "assembly", rooms + "term"}, "it runs the operator's commands, whoever asked for it"},
		{rooms + "teamserver", []string{library, rooms + "config", rooms + "agents"}, "it is a server as any other, which knows the registry and starts agents"},
		{rooms + "session", []string{rooms + "wake", rooms + "agents", rooms + "teamserver", library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "assembly", rooms + "logging", rooms + "remoteserver", rooms + "status", rooms + "telemetry", rooms + "term"}, "it runs what assembly makes"},
		{"cmd/internal/fronts", []string{"proxy/front/sessions", "sessionstate/database", "sessionstate/filelock"}, "sessions are kept the same way whatever is served"},
		{rooms + "serve", []string{library, "cmd/internal/fronts", rooms + "cli", rooms + "config", rooms + "assembly", rooms + "logging", rooms + "remoteserver", rooms + "session", rooms + "status", rooms + "telemetry"}, "it runs many sessions as session runs one"},
		{rooms + "inspect", []string{"proxy/child", "proxy/remote", "proxy/wire", rooms + "cli"}, "what a server has is the same whoever asks"},
		{rooms + "explain", []string{library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "assembly", rooms + "inspect", rooms + "remoteserver", rooms + "term"}, "it plays a call through the layers of a session, and starts none"},
		{rooms + "doctor", []string{library, rooms + "cli", rooms + "config", rooms + "setting", rooms + "filecheck", rooms + "assembly", rooms + "clientconfig", rooms + "inspect", rooms + "remoteserver", rooms + "term", rooms + "trust"}, "it looks at everything, and changes nothing"},
		{rooms + "overview", []string{rooms + "cli", rooms + "clientconfig", rooms + "config", rooms + "remoteserver", rooms + "status"}, "it shows what there is, and changes nothing"},
		{rooms + "demo", []string{library, rooms + "term"}, "the demo needs no configuration"},
		{rooms + "attachetest", []string{rooms + "cli", rooms + "config"}, "tests of several packages write the same configurations and tokens"},
		{"cmd/attache-bench", []string{"cmd/attache-bench/internal/httpclient", "cmd/attache-bench/internal/load", "cmd/attache-bench/internal/machine", "cmd/attache-bench/internal/rules", "cmd/attache-bench/internal/soak"}, "it measures the program from outside"},
		{"cmd/attache-bench/internal/httpclient", nil, "a client is measured with, and measures nothing"},
		{"cmd/attache-bench/internal/machine", nil, "it asks the system what processes use"},
		{"cmd/attache-bench/internal/rules", nil, "a configuration is text"},
		{"cmd/attache-bench/internal/soak", []string{"cmd/attache-bench/internal/machine"}, "it uses the program from outside"},
		{"cmd/attache-bench/internal/load", []string{library, "cmd/attache-bench/internal/machine", "cmd/internal/fronts"}, "it uses the stores of the program as sessions do"},
		{"packaging", nil, "packages are made of the program, from outside"},
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

// What only one place may import, and why.
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
		{"github.com/spf13/cobra", []string{"cmd/attache", rooms + "config", rooms + "setting", rooms + "attachetest"}, "a library has no command line"},
		{"github.com/modelcontextprotocol/go-sdk/mcp", []string{rooms + "demo", rooms + "teamserver", "cmd/attache-bench"}, "a frame is never decoded into its types; the demo and the teams tools are servers"},
		{"github.com/goccy/go-yaml", []string{rooms + "config", rooms + "setting", rooms + "recipes", "policy/filesource", "sessionstate/identity", "sessionstate/textfile"}, "YAML is for the files people write"},
		{"cel.dev/cel-go", []string{"sessionstate/expression"}, "one place says what an expression may read, and what it may cost"},
		{"github.com/fsnotify/fsnotify", []string{rooms + "session"}, "one place notices changes, and says what they mean"},
		{"net/http", []string{"internal/fetch", "cmd/attache-bench/internal/soak", "cmd/attache-bench", "cmd/attache-bench/internal/httpclient", rooms + "include", rooms + "serve", rooms + "config", rooms + "login", rooms + "login/logintest", rooms + "remoteserver", "proxy/front", "proxy/front/internal/bare", "proxy/front/internal/mirrored", "proxy/remote", "proxy/remote/internal/ownconn", "middleware/trace/otlp", "middleware/trace/otlp/otlptest", "policy/httpsource", "sessionstate/identity"}, "no network unless it is configured"},
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

// isPartOf reports whether a package is the foreign one, or a part of it below its path. Packages of
// the standard library have nothing to do with those below theirs, such as log and log/slog.
func isPartOf(imported, foreign string) bool {
	host, _, _ := strings.Cut(foreign, "/")
	return imported == foreign || strings.Contains(host, ".") && strings.HasPrefix(imported, foreign+"/")
}

// Only the programs' main packages touch the process's globals: everything else is
// given what it needs.
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

// uses returns where the file speaks of pkg.name for one of the names, and where
// it has an init function.
func uses(t *testing.T, path, pkg string, names []string) []string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
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

// goPackage is what go list says of a package.
type goPackage struct {
	Dir, ImportPath  string
	GoFiles, Imports []string
}

// packages returns all packages of the module, as they are on this system.
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
