package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Arguments with a wrong type, size or name are refused with an error that says what to write.
func TestTeamsArguments(t *testing.T) {
	m := newTeam(t, "0s").join("parent", "proj", "direct")
	for _, test := range []struct{ tool, arguments, want string }{
		{"create_session", `{}`, "Session title must be 1-200 characters"},
		{"create_session", `[]`, "the arguments must be an object"},
		{"create_session", `"text"`, "the arguments must be an object"},
		{"create_session", `null`, "the arguments must be an object"},
		{"create_session", `{"title":5,"agent_name":"agent","initial_message":"x"}`, "title must be a string"},
		{"create_session", `{"title":"a","agent_name":["agent"],"initial_message":"x"}`, "agent_name must be a string"},
		{"create_session", `{"title":"a","agent_name":"agent","initial_message":{"a":1}}`, "initial_message must be a string"},
		{"create_session", `{"title":"a","agent_name":"agent","initial_message":""}`, "Initial message is empty"},
		{"create_session", `{"title":"a","agent_name":"agent","initial_message":"\ud800"}`, "the arguments contain half a character (a lone surrogate)"},
		{"create_session", `{"title":"a","agent_name":"agent","initial_message":"\ud83d\\ude00"}`, "the arguments contain half a character (a lone surrogate)"},
		{"create_session", `{"title":"a","agent_name":"agent","initial_message":"x","key":7}`, "key must be a string"},
		{"create_session", `{"title":"a","agent_name":"agent","initial_message":"x","key":"` + strings.Repeat("k", 65) + `"}`, "key too long (max 64 chars)"},
		{"create_session", `{"title":"a","agent_name":"other","initial_message":"x","key":"` + strings.Repeat("k", 64) + `"}`, "Agent not found"},
		{"create_session", `{"title":"a","agent_name":"agent","initial_message":"x","trust":"direct"}`, `there is no argument "trust": the arguments are title, agent_name, initial_message, key`},
		{"send_message", `{}`, "Message is empty"},
		{"send_message", `{"session_id":5,"message":"x"}`, "session_id must be a string"},
		{"send_message", `{"session_id":"ses_000000000000","message":5}`, "message must be a string"},
		{"send_message", `{"message":"\\ud800 \ud83d\ude00"}`, "Cannot send message to session"}, // text as any other
		{"send_message", `{"to":"ses_000000000000","message":"x"}`, `there is no argument "to": the arguments are session_id, message, key`},
		{"list_workspace_sessions", `{"active_only":"yes"}`, "active_only must be true or false"},
		{"list_workspace_sessions", `{"limit":0}`, "limit must be 1-100"},
		{"list_workspace_sessions", `{"limit":101}`, "limit must be 1-100"},
		{"list_workspace_sessions", `{"limit":1.5}`, "limit must be a whole number"},
		{"list_workspace_sessions", `{"limit":1,"cursor":"zzz"}`, "cursor is not one that list_workspace_sessions returned"},
		{"list_workspace_sessions", `{"all":true}`, `there is no argument "all": the arguments are active_only, agent_name, children_of, limit, cursor`},
		{"read_messages", `{"wait_seconds":-1}`, "wait_seconds must be 0-110"},
		{"read_messages", `{"wait_seconds":111}`, "wait_seconds must be 0-110"},
		{"read_messages", `{"wait_seconds":1e30}`, "wait_seconds must be a whole number"},
		{"read_messages", `{"peek":1}`, "peek must be true or false"},
		{"read_messages", `{"wait":1}`, `there is no argument "wait": the arguments are wait_seconds, peek`},
		{"end_session", `{"session_id":5}`, "session_id must be a string"},
		{"end_session", `{"session_id":null}`, "Cannot end session"},
		{"end_session", `{"id":"ses_000000000000"}`, `there is no argument "id": the arguments are session_id`},
	} {
		text, _, isError := m.call(test.tool, json.RawMessage(test.arguments))
		if text != test.want || !isError {
			t.Errorf("%s %.100s: %q, want the refusal %q", test.tool, test.arguments, text, test.want)
		}
	}
	if left := m.sessions(object{"children_of": "me", "active_only": false}); len(left) != 0 {
		t.Errorf("sessions were created: %v", left)
	}
}

// A peek leaves the messages unread, so attache does not put them in front of its result either. attache looks for
// messages in the background. The test peeks again and again, so that some peeks come after it has found the message.
func TestPeekLeavesMessages(t *testing.T) {
	tm := newTeam(t, "0s")
	from, to := tm.join("from", "proj", "direct"), tm.join("to", "proj", "direct")
	from.do("send_message", object{"session_id": to.me(), "message": "to me"})
	for begun := time.Now(); time.Since(begun) < 600*time.Millisecond; {
		text, ahead, isError := to.call("read_messages", object{"peek": true})
		if isError || ahead != "" || !strings.Contains(text, `"to me"`) {
			t.Fatalf("a peek got %q, in front of it %q", text, ahead)
		}
	}
	if text, ahead, _ := to.call("read_messages", object{}); ahead != "" || !strings.Contains(text, `"to me"`) {
		t.Errorf("read_messages got %q, in front of it %q", text, ahead)
	}
	until(from.team, "the sender gets a receipt, which a peek does not return", func() bool {
		if got := from.do("read_messages", object{"peek": true})["receipts"].([]any); len(got) > 0 {
			t.Fatalf("a peek got the receipts %v", got)
		}
		return len(from.do("read_messages", object{})["receipts"].([]any)) > 0
	})
}

// attache agents stop says what it did, also if there was nothing to do.
func TestStopTwice(t *testing.T) {
	m := newTeam(t, "0s").join("parent", "proj", "direct")
	id := m.create("agent", "do await end")["session_id"].(string)
	for _, want := range []string{"ended " + id + "\n", id + " has ended already\n"} {
		if got := m.attache("agents", "stop", id); got != want {
			t.Errorf("attache agents stop prints %q, want %q", got, want)
		}
	}
}
