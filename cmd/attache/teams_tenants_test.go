package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newTenants makes a team whose sessions have tenants, with a key of ada of acme and one of bob of beta.
func newTenants(t *testing.T) (tm *team, ada, bob string) {
	t.Helper()
	tm = newTeam(t, "0s")
	config, err := os.OpenFile(filepath.Join(tm.dir, "config", "attache", "config.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = config.WriteString("identity: {keys_file: '" + filepath.Join(tm.dir, "keys.yaml") + "', meta_api_key: true}\n")
		_ = config.Close()
	}
	check(t, err)
	key := func(user, tenant string) string {
		return strings.TrimSpace(tm.attache("key", "create", "--user", user, "--tenant", tenant, "--trust", "direct"))
	}
	return tm, key("ada", "acme"), key("bob", "beta")
}

// An agent without a credential is the session that its parent created, in the parent's tenant.
func TestAgentOfATenant(t *testing.T) {
	t.Parallel()
	tm, ada, _ := newTenants(t)
	m := startMember(tm, tm.env("ATTACHE_API_KEY="+ada), "teams", "--session", "parent", "--workspace", filepath.Join(tm.dir, "proj"))
	m.create("agent", `do call list_workspace_sessions {}`, `do call send_message {"session_id":"{parent}","message":"hello"}`)
	if got := m.messages(1); got[0] != "hello" {
		t.Fatalf("the agent's session is another: %q", got)
	}
	if got := m.messages(1); !strings.Contains(got[0], `"parent_session_id": "`+m.me()+`"`) || strings.Contains(got[0], `"title": "parent"`) {
		t.Errorf("the agent's session is another, or its parent has no title: %q", got)
	}
	// The proof names the tenant, but only a session that it proves.
	other := startMember(tm, tm.env("ATTACHE_SESSION_ID=parent", "ATTACHE_SESSION_PROOF=guessed.YWNtZQ"), "teams", "--workspace", filepath.Join(tm.dir, "proj"))
	other.refused("Session context not available", "list_workspace_sessions", object{})
}

// Calls that pass through one process with the credentials of two tenants belong to two sessions.
func TestTenantsOfOneProcess(t *testing.T) {
	t.Parallel()
	tm, ada, bob := newTenants(t)
	m := tm.join("same", "proj", "direct")
	list := func(key string) (you string, all string) {
		t.Helper()
		meta, _ := json.Marshal(map[string]any{"name": "list_workspace_sessions", "arguments": object{}, "_meta": object{"io.github.attache-mcp/apiKey": key}})
		reply := m.request("tools/call", string(meta))
		_, after, _ := strings.Cut(reply, `\"you\": \"`)
		you, _, _ = strings.Cut(after, `\"`)
		return you, reply
	}
	first, _ := list(ada)
	second, seen := list(bob)
	if first == "" || second == "" || first == second || strings.Contains(seen, first) {
		t.Errorf("ada's session is %q, bob's %q: %s", first, second, seen)
	}
	if again, _ := list(ada); again != first {
		t.Errorf("ada's session is %q, and then %q", first, again)
	}
	// The handshake, which has no credential, has left no session of nobody.
	if all := tm.join("nobody", "proj", "direct").sessions(object{"active_only": false}); len(all) != 1 {
		t.Errorf("without a credential there are %v", all)
	}
}
