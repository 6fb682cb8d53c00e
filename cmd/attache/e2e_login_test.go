//go:build e2e

package main_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A loginRow names scenarios of the suite's authorization servers, without their prefix auth/. The
// configuration is that of testdata/e2e/person.
type loginRow struct{ revision, config, scenarios string }

var loginRows = []loginRow{
	{"2025-03-26", `{}`, "2025-03-26-oauth-metadata-backcompat 2025-03-26-oauth-endpoint-fallback"},
	{"2025-11-25", `{}`, commonLogins},
	{"2025-11-25", documentLogin, "basic-cimd"},
	{"2025-11-25", `{"grant":"client_credentials"}`, "client-credentials-basic"},
	{"2026-07-28", `{}`, commonLogins + " resource-mismatch offline-access-scope offline-access-not-supported authorization-server-migration " +
		"iss-supported iss-not-advertised iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized metadata-issuer-mismatch"},
	{"2026-07-28", documentLogin, "basic-cimd"},
}

const (
	commonLogins = "metadata-default metadata-var1 metadata-var2 metadata-var3 scope-from-www-authenticate scope-from-scopes-supported " +
		"scope-omitted-when-undefined scope-step-up scope-retry-limit token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none pre-registration"
	documentLogin = `{"client_metadata":"https://conformance-test.local/client-metadata.json"}` // the URL that the suite expects
)

// hasLogin reports whether testLogins runs the scenario of a check of auth/ with a revision.
func hasLogin(revision, check string) bool {
	scenario, _, _ := strings.Cut(strings.TrimPrefix(check, "auth/"), " ")
	return slices.ContainsFunc(loginRows, func(row loginRow) bool {
		return row.revision == revision && slices.Contains(strings.Fields(row.scenarios), scenario)
	})
}

// testLogins runs the suite's authorization servers against attache login, and against attache in front of the
// servers that they protect. Every check must pass.
func (s *suite) testLogins(t *testing.T) {
	person := s.build(t, "../../testdata/e2e/person")
	for _, row := range loginRows {
		for scenario := range strings.FieldsSeq(row.scenarios) {
			t.Run(row.revision+"/"+scenario, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*maxWait)
				defer cancel()
				client := person + " '" + row.config + "' " + s.relay // for a shell
				cmd := exec.CommandContext(ctx, s.node, s.script, "client", "--command", client, "--scenario", "auth/"+scenario,
					"--spec-version", row.revision, "--force", "--timeout", fmt.Sprint(maxWait.Milliseconds()), "-o", t.TempDir())
				cmd.Env, cmd.WaitDelay = s.env(t), maxWait
				report, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(report), "OVERALL: PASSED") {
					t.Errorf("%v\n%s", err, tail(string(report), 4000))
				}
			})
		}
	}
}

// testIssuer runs attache serve, which accepts the tokens of an authorization server from npm. A person logs in
// with the scopes that attache serve names, six attaches renew this login at once, and a program logs in by itself.
func (l *lab) testIssuer(t *testing.T) {
	person := l.build(t, "../../testdata/e2e/person")
	issuer := "http://" + l.listen(t, func(address string) []string {
		return []string{"node", filepath.Join(l.scripts, "servers/issuer.mjs"), address}
	})
	dir, listen := t.TempDir(), fmt.Sprintf("127.0.0.1:%d", freePort(t))
	url := "http://" + listen + "/mcp"
	writeFiles(t, dir, map[string]string{
		"front.yaml": "identity: {jwt: {issuer: '" + issuer + "', audience: attache, jwks: '" + issuer + "/jwks'}}\n" +
			"serve: {public_url: '" + url + "', scopes: [use]}\n",
		"robot.yaml": "server: {url: '" + url + "', oauth: {grant: client_credentials, client_id: robot, client_secret: {env: ROBOT_SECRET}, issuer: '" + issuer + "'}}\n",
	})
	l.serve(t, []string{l.goserver}, "--config", filepath.Join(dir, "front.yaml"), "--listen", listen)
	login := exec.Command(l.relay, "login", url)
	login.Env = l.env(t, "BROWSER="+person+" browse")
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var sessions []*startedCommand
	for range 6 {
		sessions = append(sessions, l.start(t, l.through([]string{url})))
	}
	sessions = append(sessions, l.start(t, []string{l.relay, "--config", filepath.Join(dir, "robot.yaml")}, "ROBOT_SECRET=secret-of-robot"))
	for _, s := range sessions {
		s.send(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`)
	}
	for _, s := range sessions {
		if answer := s.answerTo(t, 1); !strings.Contains(answer, `"result"`) {
			t.Errorf("%s\n%s", answer, s.stderrTail())
		}
	}
}
