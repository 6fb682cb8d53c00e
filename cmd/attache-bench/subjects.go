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
)

// The names of the subjects.
const (
	direct    = "direct"
	line      = "line"
	bytecopy  = "copy"
	plain     = "attache"
	withFill  = "attache+fill"
	withRules = "attache+rules"
	withCEL   = "attache+cel"
	withTeams = "attache+teams"
	floor     = "floor"
)

// A subject is a command to measure.
type subject struct {
	Name string
	What string // for -list
	Argv []string
	Env  []string
	// Fills: every call must reach the server with a workspace. Without it, none may.
	// Briefs: the first answer must reach the client with a briefing. Without it, none may.
	Fills, Briefs bool
	// Parts are the parts that measure the subject, nil for all.
	Parts []string
	// Front is a configuration that admits many sessions, for a subject without a configuration.
	Front string
}

// briefingTitle is in every briefing.
const briefingTitle = "SESSION CONTEXT (auto-injected)"

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

// prepare builds attache into dir unless a path is given, writes its configurations
// there, and returns the subjects.
func prepare(ctx context.Context, dir, attache string, stderr io.Writer) ([]subject, error) {
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

// build builds attache like a release (.goreleaser.yaml).
func build(ctx context.Context, to string, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, "github.com/attache-mcp/attache/cmd/attache")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = stderr, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build attache: %w; run in a checkout that builds, or name the program with -attache PATH", err)
	}
	return nil
}

// configure writes the configurations of attache to dir.
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
		"keys.yaml":          keysFile(),
		"rules.yaml":         rulesFile(false),
		"cel.yaml":           rulesFile(true),
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
	server := []string{self, modeServer, `"workspace":` + string(quoted)}
	base := cleanEnv(env, filepath.Join(dir, "home"))
	behind := func(command ...string) []string { return append(command, server...) }
	stdio := []string{"start", "small calls", "pipelined"}
	ruled := func(s subject, file string) subject {
		s.Fills, s.Parts = true, stdio
		s.Argv = behind(attache, "--config", filepath.Join(dir, file), "--workspace", workspace, "--")
		s.Env = append(slices.Clone(base), "ATTACHE_API_KEY="+apiKey)
		return s
	}
	return []subject{
		{Name: direct, What: "the server alone", Argv: server, Env: base},
		{Name: line, What: "a relay of lines: newline framing, one write a message", Argv: behind(self, modeLine), Env: base},
		{Name: bytecopy, What: "a copy of bytes, 64 KiB at a time", Argv: behind(self, modeCopy), Env: base},
		{
			Name: floor, What: "over HTTP: a bridge that passes lines and checks nothing; between HTTP and HTTP net/http's reverse proxy",
			Argv: behind(self), Env: base, Parts: []string{"h2s", "s2h", "h2h"},
		},
		{Name: plain, What: "attache with no configuration", Argv: behind(attache, "--"), Env: base, Front: filepath.Join(dir, "front.yaml")},
		{
			Name: withFill, What: "attache with a rule that fills workspace into every call, and a briefing",
			Fills: true, Briefs: true,
			Argv: behind(attache, "--config", filepath.Join(dir, "config.yaml"),
				"--policy", filepath.Join(dir, "policies"), "--scope", "acme", "--"),
			Env: append(slices.Clone(base), "ATTACHE_WORKSPACE="+workspace),
		},
		ruled(subject{Name: withRules, What: "attache with twenty rules, without CEL's engine: pins, rewriting, access; an API key; an audit file"}, "rules.yaml"),
		ruled(subject{Name: withCEL, What: "the same with conditions that need CEL's engine"}, "cel.yaml"),
		{
			Name: withTeams, What: "attache with teams enabled, and no mail", Parts: stdio,
			Argv: behind(attache, "--config", filepath.Join(dir, "teams.yaml"), "--workspace-id", "bench", "--session", "bench", "--"),
			Env:  base,
		},
	}
}

// cleanEnv removes variables that would configure attache or identify a session of
// the host that runs this benchmark, and directs the files of attache to home.
func cleanEnv(env []string, home string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		return strings.HasPrefix(entry, "ATTACHE_") || strings.HasPrefix(entry, "CLAUDE_") || strings.HasPrefix(entry, "XDG_CONFIG_HOME=") || strings.HasPrefix(entry, "XDG_STATE_HOME=")
	})
	return append(out, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home)
}
