package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/rules"
)

// The subjects.
const (
	direct   = "direct"
	line     = "line"
	bytecopy = "copy"
	plain    = "attache"
	filling  = "attache+fill"
	ruling   = "attache+rules"
	celling  = "attache+cel"
	teaming  = "attache+teams"
	floor    = "floor"
)

func subjectNames() []string {
	return []string{direct, line, bytecopy, floor, plain, filling, ruling, celling, teaming}
}

// measured are the subjects that have figures to reach.
func measured() []string { return []string{plain, filling, ruling, celling} }

func describe(name string) string {
	switch name {
	case direct:
		return "the server alone"
	case line:
		return "a relay of lines: newline framing, one write a message"
	case bytecopy:
		return "a copy of bytes, 64 KiB at a time"
	case floor:
		return "over HTTP: a bridge that passes lines and checks nothing; between HTTP and HTTP net/http's reverse proxy"
	case plain:
		return "attache with no configuration"
	case filling:
		return "attache with a rule that fills workspace into every call, and a briefing"
	case ruling:
		return "attache with twenty rules, without CEL's engine: pins, rewriting, access; an API key; an audit file"
	case celling:
		return "the same with conditions that need CEL's engine"
	case teaming:
		return "attache with teams enabled, and no mail"
	}
	return ""
}

// A subject is one command that is measured. It crosses to the process that
// measures on one CPU, so its fields are exported.
type subject struct {
	Name string
	Argv []string
	Env  []string
	// Fills says that every call must reach the server with a workspace, and Briefs
	// that the first answer must reach the client with a briefing. Otherwise
	// neither may be.
	Fills, Briefs bool
	// Parts are the parts it is measured in, nil for all.
	Parts []string
	// Front is a configuration that admits many sessions, for one without another.
	Front string
}

// briefed is in every briefing.
const briefed = "SESSION CONTEXT (auto-injected)"

const policyFile = `scope: acme
policies:
  - {name: require-tests, position: prepend, text: "All code changes must include tests."}
  - {name: security-review, position: append, text: "Flag any credential handling for review."}
objectives:
  - Improve platform reliability
`

const configFile = `arguments:
  - {tools: ["*"], argument: workspace, value: session.workspace.path, mode: fill}
serve: {limits: {sessions: 5000, per_principal: 5000, children: 5000}}
`

const frontFile = `serve: {limits: {sessions: 5000, per_principal: 5000, children: 5000}}
`

// prepare builds attache unless it is given, writes the configuration it is
// measured with, and returns the subjects and what removes it all.
func prepare(ctx context.Context, attache string, stderr io.Writer) ([]subject, func(), error) {
	dir, err := os.MkdirTemp("", "attache-bench")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the run: %w; set TMPDIR to one that can be written", err)
	}
	remove := func() { _ = os.RemoveAll(dir) }
	out, err := prepareIn(ctx, dir, attache, stderr)
	if err != nil {
		remove()
	}
	return out, remove, err
}

func prepareIn(ctx context.Context, dir, attache string, stderr io.Writer) ([]subject, error) {
	if attache == "" {
		attache = filepath.Join(dir, "attache")
		if err := build(ctx, attache, stderr); err != nil {
			return nil, err
		}
	}
	attache, err := exec.LookPath(attache)
	if err != nil {
		return nil, fmt.Errorf("%w; name the program with -attache PATH", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's own file: %w; build it and run the file", err)
	}
	if err := configure(dir); err != nil {
		return nil, fmt.Errorf("write the configuration to measure with: %w; set TMPDIR to a folder with room", err)
	}
	return subjects(self, attache, dir, os.Environ()), nil
}

// build builds attache as it is released (.goreleaser.yaml).
func build(ctx context.Context, to string, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, "github.com/attache-mcp/attache/cmd/attache")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = stderr, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build attache: %w; run in a checkout that builds, or name the program with -attache PATH", err)
	}
	return nil
}

// configure writes the configurations of attache into dir.
func configure(dir string) error {
	for _, sub := range []string{"policies", "workspace", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"config.yaml":        configFile,
		"front.yaml":         frontFile,
		"policies/acme.yaml": policyFile,
		"keys.yaml":          rules.Keys(),
		"rules.yaml":         rules.File(false),
		"cel.yaml":           rules.File(true),
		"teams.yaml":         "teams: {enabled: true}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// subjects returns the subjects of a run whose files are in dir.
func subjects(self, attache, dir string, env []string) []subject {
	workspace := filepath.Join(dir, "workspace")
	quoted, _ := json.Marshal(workspace)
	member := `"workspace":` + string(quoted)
	server := []string{self, modeServer, member}
	base := cleanEnv(env, filepath.Join(dir, "home"))
	behind := func(command ...string) []string { return append(command, server...) }
	return []subject{
		{Name: direct, Argv: server, Env: base},
		{Name: line, Argv: behind(self, modeLine), Env: base},
		{Name: bytecopy, Argv: behind(self, modeCopy), Env: base},
		{Name: floor, Argv: behind(self), Env: base, Parts: []string{string(httpToStdio), string(stdioToHTTP), string(httpToHTTP)}},
		{Name: plain, Argv: behind(attache, "--"), Env: base, Front: filepath.Join(dir, "front.yaml")},
		{
			Name: filling, Fills: true, Briefs: true,
			Argv: behind(attache, "--config", filepath.Join(dir, "config.yaml"),
				"--policy", filepath.Join(dir, "policies"), "--scope", "acme", "--"),
			Env: append(slices.Clone(base), "ATTACHE_WORKSPACE="+workspace),
		},
		withRules(ruling, "rules.yaml", attache, dir, base, server),
		withRules(celling, "cel.yaml", attache, dir, base, server),
		{
			Name: teaming, Parts: []string{"start", "small calls", "pipelined"},
			Argv: behind(attache, "--config", filepath.Join(dir, "teams.yaml"), "--workspace-id", "bench", "--session", "bench", "--"),
			Env:  base,
		},
	}
}

// cleanEnv leaves out what would configure attache, or tell it of a session of
// the host this benchmark runs in. What attache keeps is kept in home, and not with what
// it keeps for the user.
func cleanEnv(env []string, home string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return strings.HasPrefix(entry, "ATTACHE_") || strings.HasPrefix(entry, "CLAUDE_") || strings.HasPrefix(entry, "XDG_CONFIG_HOME=") || strings.HasPrefix(entry, "XDG_STATE_HOME=")
	})
	return append(out, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home)
}

// withRules returns a subject with the rules in a file of dir.
func withRules(name, file, attache, dir string, base, server []string) subject {
	argv := []string{attache, "--config", filepath.Join(dir, file), "--workspace", filepath.Join(dir, "workspace"), "--"}
	return subject{
		Name: name, Fills: true,
		Parts: []string{"start", "small calls", "pipelined"},
		Argv:  append(argv, server...),
		Env:   append(slices.Clone(base), "ATTACHE_API_KEY="+rules.Key),
	}
}
