package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// audited returns the records of a kind, each with the notes of its rules as one text.
func (tm *team) audited(kind string) (records []object) {
	data, _ := os.ReadFile(filepath.Join(tm.dir, "config", "attache", "audit.jsonl"))
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var r object
		if json.Unmarshal(lines.Bytes(), &r) != nil || r["kind"] != kind {
			continue
		}
		var notes strings.Builder
		rules, _ := r["rules"].([]any)
		for _, rule := range rules {
			note := rule.(object)
			notes.WriteString(note["act"].(string) + " " + note["why"].(string) + "\n")
		}
		r["notes"] = notes.String()
		records = append(records, r)
	}
	return records
}

// awaitNote waits until the audit has a record of a tool call with a note.
func (tm *team) awaitNote(tool, note string) (record object) {
	tm.Helper()
	until(tm, "the audit says of "+tool+": "+note, func() bool {
		for _, r := range tm.audited("call") {
			if r["tool"] == tool && strings.Contains(r["notes"].(string), note+"\n") {
				record = r
				return true
			}
		}
		return false
	})
	return record
}

// Every operation is audited, and each run of an agent has records of its supervisor.
func TestTeamsAudit(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "0s")
	config := filepath.Join(tm.dir, "config", "attache", "config.yaml")
	file := filepath.Join(filepath.Dir(config), "audit.jsonl")
	text, err := os.ReadFile(config)
	if err == nil {
		err = os.WriteFile(config, append(text, "audit: {file: audit.jsonl}\n"...), 0o600)
	}
	check(t, err)
	m, peer := tm.join("parent", "proj", "direct"), tm.join("peer", "proj", "direct")
	me, to := m.me(), peer.me()

	child := m.create("session", "do touch begun", "do await end", "do print words of the agent")["session_id"].(string)
	created := tm.awaitNote("create_session", "allowed created "+child+" (agent session, direct)")
	if created["session"] != "parent" || created["decision"] != "allowed" || created["arguments"] != nil {
		t.Errorf("create_session: %v", created)
	}
	m.refused("Cannot send message to session", "send_message", object{"session_id": "ses_000000000000", "message": "x"})
	if r := tm.awaitNote("send_message", "refused Cannot send message to session"); r["decision"] != "refused" || r["result"] != "tool_error" {
		t.Errorf("a refused call: %v", r)
	}
	message := m.do("send_message", object{"session_id": to, "message": "hello"})["message_id"].(string)
	tm.awaitNote("send_message", "allowed sent "+message+" to "+to)

	for len(peer.carried) == 0 { // in front of any result
		peer.me()
	}
	seen := func() bool {
		peer.me() // a further request
		for _, r := range tm.audited("call") {
			if strings.Contains(r["notes"].(string), "allowed seen: "+message+"\n") {
				return true
			}
		}
		return false
	}
	until(tm, "the message was seen", seen)
	carried := false
	for _, r := range tm.audited("call") {
		edits, _ := json.Marshal(r["edits"])
		carried = carried || r["session"] == "peer" && strings.Contains(string(edits), "carried: "+message)
	}
	if !carried {
		t.Error("no record says that the message was carried")
	}
	message = m.do("send_message", object{"session_id": to, "message": "read me"})["message_id"].(string)
	peer.do("read_messages", object{"wait_seconds": 20})
	tm.awaitNote("read_messages", "allowed carried: "+message)

	tm.awaitFile("begun") // without this, the session could end before the agent has its prompt
	m.do("end_session", object{"session_id": child})
	tm.awaitNote("end_session", "allowed ended "+child+" "+child)
	m.messages(1)
	for range 2 { // the second call starts nothing
		if out := m.do("create_session", object{"title": "None", "agent_name": "missing", "initial_message": "x", "key": "one"}); out["state"] != "failed" {
			t.Errorf("got %v", out)
		}
	}
	m.messages(1)

	// What a parent was told is recorded by then.
	var got []string
	for _, kind := range []string{"agent_started", "agent_ended"} {
		for _, r := range tm.audited(kind) {
			line, _, _ := strings.Cut(strings.Join([]string{kind, str(r["agent"]), str(r["result"]), str(r["why"])}, " "), ", after ")
			got = append(got, strings.TrimSpace(line))
			if r["server"] != "attache-teams" || r["parent"] != me || r["agent_run"] != 1.0 || !strings.HasPrefix(str(r["agent_session"]), "ses_") {
				t.Errorf("%v", r)
			}
			if digest := str(r["report_digest"]); strings.HasPrefix(digest, "hmac-sha256:") != (kind == "agent_ended") {
				t.Errorf("%s: the digest of its report is %q", kind, digest)
			}
		}
	}
	want := []string{"agent_started session", "agent_started missing", "agent_ended session failed ended", `agent_ended missing failed could not start: `}
	for i, line := range got {
		if i >= len(want) || !strings.HasPrefix(line, want[i]) {
			t.Errorf("recorded is %q, want %q", got, want)
			break
		}
	}
	if data, _ := os.ReadFile(file); len(got) != len(want) || bytes.Contains(data, []byte("words of the agent")) {
		t.Errorf("recorded is %q, want %q", got, want)
	}
	if out := tm.attache("audit", "verify", file); !strings.Contains(out, ": ok: ") {
		t.Errorf("audit verify: %s", out)
	}
	if out := tm.attache("audit", "tail", file); !strings.Contains(out, "  agent_ended  session  "+child+"  ended, after ") {
		t.Errorf("audit tail: %s", out)
	}
}

func str(v any) string { s, _ := v.(string); return s }
