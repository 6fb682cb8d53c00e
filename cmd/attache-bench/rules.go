package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// apiKey is the API key of the subjects with rules. It is used nowhere else.
const apiKey = "atk_bench001_ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

func keysFile() string {
	return fmt.Sprintf(`keys:
  - id: bench001
    sha256: %x
    user: ada
    tenant: acme
    roles: [developer]
    permissions: [tools:call, records:read]
    created: 2026-07-28T09:00:00Z
`, sha256.Sum256([]byte(apiKey)))
}

// rulesFile returns a configuration of twenty rules, most of which apply to every call: five
// for arguments, five that rewrite, ten for access. With cel their conditions read arguments
// and lists, which needs CEL's engine.
func rulesFile(cel bool) string {
	sandboxed, foreign, guest := `session.trust == "sandboxed"`, `principal.tenant == "evil"`, `"guest" in principal.roles`
	if cel {
		sandboxed = `session.trust == "sandboxed" && has(arguments.size)`
		foreign = `has(arguments.path) && !arguments.path.startsWith(session.workspace.path)`
		guest = `principal.roles.exists(r, r.startsWith("guest"))`
	}
	return strings.NewReplacer("SANDBOXED", sandboxed, "FOREIGN", foreign, "GUEST", guest).Replace(`
identity: {keys_file: keys.yaml}
audit: {file: audit.jsonl, arguments: digest}
arguments:
  - {tools: ["*"], argument: workspace, value: session.workspace.path, mode: pin}
  - {tools: ["*"], argument: tenant, value: principal.tenant, mode: pin}
  - {tools: ["git_*"], argument: repository, value: session.workspace.id, mode: fill}
  - {tools: ["e*", "s*"], argument: token, mode: forbid}
  - {tools: ["issue_?"], argument: assignee, value: principal.user, mode: pin}
rewrite:
  - {tools: ["delete_*"], hide: true}
  - {tools: ["search"], rename: search_code, describe: "Search the code."}
  - {tools: ["*"], set: {labels: '["agent"]'}, when: 'SANDBOXED'}
  - {tools: ["internal_*", "debug_*"], hide: true}
  - {tools: ["fetch"], describe: "Fetch a page of the intranet."}
access:
  default: deny
  rules:
    - {tools: ["drop_*", "delete_*"], deny: true}
    - {tools: ["*"], deny: true, when: 'SANDBOXED', message: "Not from a sandbox."}
    - {tools: ["*"], deny: true, when: 'FOREIGN', message: "Outside the workspace."}
    - {tools: ["e*", "s*"], deny: true, when: 'GUEST'}
    - {tools: ["write_*"], require: [records:write]}
    - {tools: ["get_*", "list_*"], require: [records:read]}
    - {tools: ["admin_*"], require: [admin]}
    - {tools: ["??"], deny: true}
    - {tools: ["tally"]}
    - {tools: ["*"], require: [tools:call]}
`)
}
