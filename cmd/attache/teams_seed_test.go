package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests that seed 001 lists, with its names for them.

func TestCreateSession(t *testing.T) {
	t.Parallel()
	run := func(name string, f func(*team)) { t.Run(name, func(t *testing.T) { f(newTeam(t, "0s")) }) }
	good := func(change object) object {
		in := object{"title": "Backend API", "agent_name": "agent", "initial_message": "do print done"}
		maps.Copy(in, change)
		return in
	}
	run("creates_child_session_with_parent_relationship", func(tm *team) {
		m := tm.join("parent", "proj", "sandboxed")
		out := m.create("agent", "do await end")
		you := m.me()
		want := object{"parent_session_id": you, "trust_level": "sandboxed", "depth": 1.0, "state": "running", "agent_name": "agent", "children": 1.0, "max_children": 10.0, "title": "A child"}
		for k, v := range want {
			if out[k] != v {
				tm.Errorf("%s is %v, want %v", k, out[k], v)
			}
		}
		row := m.sessions(object{})[out["session_id"].(string)]
		if row["created_by"] != "agent:"+you || row["parent_session_id"] != you || m.do("list_workspace_sessions", object{})["workspace_id"] != out["workspace_id"] {
			tm.Errorf("listed as %v", row)
		}
	})
	run("validates_title_length", func(tm *team) {
		m := tm.join("parent", "proj", "direct")
		for _, title := range []string{"", "  ", strings.Repeat("x", 201)} {
			m.refused("Session title must be 1-200 characters", "create_session", good(object{"title": title}))
		}
		m.do("create_session", good(object{"title": strings.Repeat("x", 200)}))
	})
	run("validates_title_characters", func(tm *team) {
		m := tm.join("parent", "proj", "direct")
		for _, title := range []string{"a<b", "a\nb", `a"b`, "a;b", "a/b"} {
			m.refused("Session title contains invalid characters", "create_session", good(object{"title": title}))
		}
	})
	run("validates_agent_name_format", func(tm *team) {
		m := tm.join("parent", "proj", "direct")
		for _, name := range []string{"", "a b", "../agent", strings.Repeat("a", 65)} {
			m.refused("Agent name must be alphanumeric with hyphens/underscores", "create_session", good(object{"agent_name": name}))
		}
	})
	run("validates_message_length", func(tm *team) {
		m := tm.join("parent", "proj", "direct")
		m.refused("Initial message too long (max 10000 chars)", "create_session", good(object{"initial_message": strings.Repeat("ü", 10_001)}))
		m.do("create_session", good(object{"initial_message": strings.Repeat("ü", 10_000)}))
	})
	run("enforces_spawn_limit", func(tm *team) {
		m := tm.join("parent", "proj", "direct")
		for range 10 { // agents that stay: one that has ended frees its place
			m.create("agent", "do await end")
		}
		m.refused("Spawn limit reached (10 child sessions)", "create_session", good(nil))
		tm.touch("end")
		m.messages(10)
		m.do("create_session", good(nil))
	})
	t.Run("enforces_rate_limit", func(t *testing.T) {
		m := newTeam(t, "1h").join("parent", "proj", "direct")
		m.do("create_session", good(nil))
		text, _, isError := m.call("create_session", good(nil))
		var wait float64 // how much of the hour is left when the second call comes
		n, _ := fmt.Sscanf(text, "Rate limit exceeded (1 session per 1h0m0s): try again in %f s", &wait)
		if !isError || n != 1 || wait <= 0 || wait > 3600 || !strings.HasSuffix(text, fmt.Sprintf(" in %.1f s", wait)) {
			t.Errorf("got %q", text)
		}
	})
	run("validates_agent_exists", func(tm *team) {
		tm.join("parent", "proj", "direct").refused("Agent not found", "create_session", good(object{"agent_name": "other"}))
		tm.join("other", "proj", "sandboxed").refused("Agent not found", "create_session", good(object{"agent_name": "persons"}))
	})
	run("cannot_create_without_context", func(tm *team) {
		m := tm.join("parent", "", "direct")
		for _, tool := range []string{"create_session", "send_message", "list_workspace_sessions", "read_messages", "end_session"} {
			m.refused("Session context not available", tool, good(nil))
		}
	})
	run("workspace_scoped_agent_discovery", func(tm *team) {
		// Agents are the operator's alone: what a workspace has of that name counts for nothing.
		m := tm.join("parent", "proj", "direct")
		m.refused("Agent not found", "create_session", good(object{"agent_name": "specialist"}))
		m.create("agent", "do env PWD")
		if got := m.messages(1)[0]; !strings.Contains(got, "PWD="+filepath.Join(tm.dir, "proj")+"\n") && !strings.HasSuffix(got, "PWD="+filepath.Join(tm.dir, "proj")) {
			tm.Errorf("the agent runs elsewhere: %s", got)
		}
	})
}

func TestSendMessage(t *testing.T) {
	t.Parallel()
	run := func(name string, f func(*team)) { t.Run(name, func(t *testing.T) { f(newTeam(t, "0s")) }) }
	send := func(to, message string) object { return object{"session_id": to, "message": message} }
	const generic = "Cannot send message to session"
	run("delivers_message_to_same_workspace", func(tm *team) {
		a, b := tm.join("a", "proj", "direct"), tm.join("b", "proj", "direct")
		out := a.do("send_message", send(b.me(), "hello"))
		if out["status"] != "queued" || out["reach"] != "next_tool_call" || out["message_length"] != 5.0 {
			tm.Errorf("got %v", out)
		}
		if got := b.messages(1); got[0] != "hello" {
			tm.Errorf("got %v", got)
		}
	})
	run("keeps_code_readable", func(tm *team) {
		a, b := tm.join("a", "proj", "direct"), tm.join("b", "proj", "direct")
		a.do("send_message", send(b.me(), "if a < b && c > d"))
		if text, ahead, _ := b.call("read_messages", object{}); !strings.Contains(ahead+text, "if a < b && c > d") {
			tm.Errorf("got %s", ahead+text)
		}
	})
	run("blocks_cross_workspace_messaging", func(tm *team) {
		a, b := tm.join("a", "proj", "direct"), tm.join("b", "proj2", "direct")
		a.refused(generic, "send_message", send(b.me(), "hello"))
	})
	run("sandboxed_cannot_message_direct", func(tm *team) {
		a, b := tm.join("a", "proj", "sandboxed"), tm.join("b", "proj", "direct")
		a.refused(generic, "send_message", send(b.me(), "hello"))
	})
	run("direct_can_message_sandboxed", func(tm *team) {
		a, b := tm.join("a", "proj", "direct"), tm.join("b", "proj", "sandboxed")
		a.do("send_message", send(b.me(), "hello"))
	})
	run("validates_message_length", func(tm *team) {
		a, b := tm.join("a", "proj", "direct"), tm.join("b", "proj", "direct")
		to := b.me()
		a.refused("Message too long (max 50000 chars)", "send_message", send(to, strings.Repeat("ü", 50_001)))
		a.do("send_message", send(to, strings.Repeat("ü", 50_000)))
	})
	run("validates_control_characters", func(tm *team) {
		a, b := tm.join("a", "proj", "direct"), tm.join("b", "proj", "direct")
		to := b.me()
		for _, text := range []string{"a\x00b", "a\x1bb", "a\rb"} {
			a.refused("Message contains invalid control characters", "send_message", send(to, text))
		}
		a.do("send_message", send(to, "a\r\n\r\nb")) // text of Windows has blank lines
		if got := b.messages(1); got[0] != "a\n\nb" {
			tm.Errorf("got %q", got)
		}
	})
	run("validates_json_safety", func(tm *team) {
		a, b := tm.join("a", "proj", "direct"), tm.join("b", "proj", "direct")
		text := "\"quoted\" \\ \u2028 <script> {\"a\":1}"
		a.do("send_message", send(b.me(), text))
		if got := b.messages(1); got[0] != "\"quoted\" \\ \n <script> {\"a\":1}" {
			tm.Errorf("got %q", got)
		}
	})
	run("error_messages_dont_leak_info", func(tm *team) {
		me := tm.join("a", "proj", "sandboxed")
		elsewhere, direct := tm.join("b", "proj2", "sandboxed").me(), tm.join("c", "proj", "direct").me()
		for _, to := range []string{elsewhere, direct, "ses_000000000000", "no handle", me.me(), ""} {
			me.refused(generic, "send_message", send(to, "hello"))
			me.refused("Cannot end session", "end_session", object{"session_id": to})
		}
	})
}

func TestListWorkspaceSessions(t *testing.T) {
	tm := newTeam(t, "0s")
	direct, sandboxed, other := tm.join("a", "proj", "direct"), tm.join("b", "proj", "sandboxed"), tm.join("c", "proj2", "direct")
	child := direct.create("sandboxed", "do await end", `do call send_message {"session_id":"{parent}","message":"up"}`, "do call list_workspace_sessions {}")["session_id"].(string)
	ids := []string{direct.me(), sandboxed.me(), other.me()}
	check := func(t *testing.T, m *member, want ...string) {
		t.Helper()
		got := m.sessions(object{})
		ok := len(got) == len(want)
		for _, id := range want {
			ok = ok && got[id] != nil
		}
		if !ok {
			t.Errorf("listed are %v, want %v", sortedKeys(got), want)
		}
	}
	t.Run("filters_by_workspace", func(t *testing.T) { check(t, other, ids[2]) })
	t.Run("sandboxed_cannot_see_direct", func(t *testing.T) { check(t, sandboxed, ids[1], child) })
	t.Run("direct_sees_all", func(t *testing.T) { check(t, direct, ids[0], ids[1], child) })
	t.Run("includes_parent_session_id", func(t *testing.T) {
		if row := direct.sessions(object{})[child]; row["parent_session_id"] != ids[0] {
			t.Errorf("got %v", row)
		}
	})
	t.Run("includes_created_by", func(t *testing.T) {
		rows := direct.sessions(object{})
		if rows[child]["created_by"] != "agent:"+ids[0] || rows[ids[0]]["created_by"] != "user" {
			t.Errorf("got %v", rows)
		}
	})
	t.Run("sandboxed_sees_parent_without_title", func(t *testing.T) {
		tm.touch("end")
		if got := direct.messages(2); got[0] != "up" || !strings.Contains(got[1], `"title": "parent"`) { // it may write to its parent
			t.Errorf("got %q", got)
		}
	})
}

// The integration tests of the seed.
func TestMultiAgentWorkflow(t *testing.T) {
	t.Parallel()
	t.Run("coordinator_spawns_and_messages_child", func(t *testing.T) {
		tm := newTeam(t, "0s")
		m := tm.join("parent", "proj", "direct")
		child := m.create("agent", `do call send_message {"session_id":"{parent}","message":"ready"}`,
			`do await sent`, `do call list_workspace_sessions {}`, `do call read_messages {"wait_seconds":20}`)["session_id"].(string)
		if got := m.messages(1); got[0] != "ready" {
			tm.Fatalf("got %v", got)
		}
		m.do("send_message", object{"session_id": child, "message": "go on"})
		if row := m.sessions(object{})[child]; row["is_active"] != true {
			tm.Errorf("listed as %v", row)
		}
		tm.touch("sent") // from here on the child may end at any time
		if result := m.messages(1)[0]; !strings.Contains(result, "go on") || !strings.Contains(result, "finished after") {
			tm.Errorf("the result is %s", result)
		}
	})
	t.Run("child_inherits_workspace_and_trust", func(t *testing.T) {
		tm := newTeam(t, "0s")
		m := tm.join("parent", "proj", "sandboxed")
		m.create("agent", `do env ATTACHE_TRUST_LEVEL`, `do env ATTACHE_WORKSPACE_PATH`,
			`do call create_session {"title":"up","agent_name":"persons","initial_message":"x"}`,
			`do call create_session {"title":"down","agent_name":"agent","initial_message":"do env ATTACHE_TRUST_LEVEL"}`)
		result := m.messages(1)[0]
		for _, want := range []string{"ATTACHE_TRUST_LEVEL=sandboxed", "ATTACHE_WORKSPACE_PATH=" + filepath.Join(tm.dir, "proj"), "Agent not found", `"trust_level": "sandboxed"`, `"depth": 2`} {
			if !strings.Contains(result, want) {
				tm.Errorf("the result lacks %s:\n%s", want, result)
			}
		}
	})
	t.Run("workspace_isolation", func(t *testing.T) {
		tm := newTeam(t, "0s")
		a, b := tm.join("a", "proj", "direct"), tm.join("b", "proj2", "direct")
		to := b.me()
		a.refused("Cannot send message to session", "send_message", object{"session_id": to, "message": "x"})
		if got := a.sessions(object{"active_only": false}); got[to] != nil {
			t.Errorf("listed: %v", got)
		}
	})
	t.Run("concurrent_session_creation", func(t *testing.T) {
		tm := newTeam(t, "1s") // ten parents: one may create one a second
		var wait sync.WaitGroup
		var members []*member
		for i := range 10 {
			m := tm.join(fmt.Sprint("parent ", i), "proj", "direct")
			m.me()
			members = append(members, m)
		}
		for _, m := range members {
			wait.Go(func() { m.create("agent", "do print done") })
		}
		wait.Wait()
		for _, m := range members {
			if rows := m.sessions(object{"children_of": "me", "active_only": false}); len(rows) != 1 {
				t.Errorf("one parent has the children %v", rows)
			}
		}
	})
	t.Run("rate_limiting_blocks_rapid_creation", func(t *testing.T) {
		m := newTeam(t, "1s").join("parent", "proj", "direct")
		in := object{"title": "a", "agent_name": "agent", "initial_message": "do print done"}
		made := 0
		for range 10 { // of a burst one or, on a slow machine, one a second
			begun := time.Now()
			_, _, first := m.call("create_session", in)
			_, _, second := m.call("create_session", in)
			if !first {
				made++
			}
			if !first && !second && time.Since(begun) < time.Second {
				t.Fatal("two were created within a second")
			}
			if made > 1 {
				return
			}
			time.Sleep(time.Second)
		}
		t.Error("after a second nothing can be created")
	})
	t.Run("spawn_limit_blocks_excessive_children", func(t *testing.T) {
		m := newTeam(t, "0s").join("parent", "proj", "direct")
		for range 10 {
			m.create("agent", "do await end")
		}
		m.refused("Spawn limit reached (10 child sessions)", "create_session", object{"title": "a", "agent_name": "agent", "initial_message": "x"})
	})
}
