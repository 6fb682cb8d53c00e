//go:build e2e

package main_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// testLogins runs the suite's authorization servers against attache login, and against attache in front of the
// servers that they protect. Every check must pass.
func (s *suite) testLogins(t *testing.T) {
	person := s.build(t, "../../testdata/e2e/person")
	const (
		document = `{"client_metadata":"https://conformance-test.local/client-metadata.json"}` // the URL that the suite expects
		machine  = `{"grant":"client_credentials"}`
	)
	for _, row := range []struct{ revision, config, scenarios string }{
		{"2025-03-26", `{}`, "2025-03-26-oauth-metadata-backcompat 2025-03-26-oauth-endpoint-fallback"},
		{"2025-11-25", `{}`, "metadata-default metadata-var1 metadata-var2 metadata-var3 scope-from-www-authenticate scope-from-scopes-supported " +
			"scope-omitted-when-undefined scope-step-up scope-retry-limit token-endpoint-auth-basic token-endpoint-auth-post token-endpoint-auth-none pre-registration"},
		{"2025-11-25", document, "basic-cimd"},
		{"2025-11-25", machine, "client-credentials-basic"},
		{"2026-07-28", `{}`, "metadata-default scope-step-up scope-retry-limit pre-registration resource-mismatch offline-access-scope offline-access-not-supported " +
			"authorization-server-migration iss-supported iss-not-advertised iss-supported-missing iss-wrong-issuer iss-unexpected iss-normalized metadata-issuer-mismatch"},
		{"2026-07-28", document, "basic-cimd"},
	} {
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
