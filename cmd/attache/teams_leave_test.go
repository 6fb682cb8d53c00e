package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A session that others have ended or forgotten, because its machine was suspended for more than a day or
// the database was restored, is registered again with its first call.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	m := newTeam(t, "0s").join("forgotten", "proj", "direct")
	m.me()
	db, err := sql.Open("sqlite", filepath.Join(m.dir, "state", "attache", "teams.db")+"?_pragma=busy_timeout(60000)")
	check(t, err)
	defer db.Close()
	for _, change := range []string{`UPDATE sessions SET ended = 1`, `DELETE FROM sessions`} {
		if _, err := db.Exec(`DELETE FROM attachments; ` + change); err != nil {
			t.Fatal(err)
		}
		if row := m.sessions(object{})[m.me()]; row["is_active"] != true {
			t.Errorf("after %s the session is %v", change, row)
		}
	}
}

// A client that leaves while read_messages waits gets an answer, and attache ends at once: it takes no
// message for a client that no longer reads, also if the client gave two calls the same id.
func TestReaderLeaves(t *testing.T) {
	t.Parallel()
	for _, calls := range []int{1, 2} {
		m := newTeam(t, "0s").join("reader", "proj", "direct")
		for range calls {
			m.post("tools/call", `{"name":"read_messages","arguments":{"wait_seconds":110}}`)
			m.id--
		}
		m.id++
		_ = m.in.Close()
		late := time.AfterFunc(time.Minute, func() { _ = m.cmd.Process.Kill() })
		if _, ok := m.await(); !ok {
			t.Errorf("%d calls: no answer", calls)
		}
		if err := m.cmd.Wait(); err != nil || !late.Stop() {
			t.Errorf("%d calls: attache did not end: %v", calls, err)
		}
	}
}

// A read whose receipts cannot be fetched returns the messages that it has taken. An error would lose them,
// because they count as delivered once an answer is written.
func TestReadWithoutReceipts(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, "0s")
	me, peer := tm.join("me", "proj", "direct"), tm.join("peer", "proj", "direct")
	from := me.me()
	me.do("send_message", object{"session_id": peer.me(), "message": "to the peer"})
	peer.messages(1)
	db, err := sql.Open("sqlite", filepath.Join(tm.dir, "state", "attache", "teams.db")+"?_pragma=busy_timeout(60000)")
	check(t, err)
	defer db.Close()
	if _, err := db.Exec(`CREATE TRIGGER broken BEFORE UPDATE OF reported ON messages BEGIN SELECT RAISE(ABORT, 'broken'); END;
		UPDATE messages SET state = 'seen', seen = 1 WHERE reported = 'queued'`); err != nil {
		t.Fatal(err)
	}
	peer.do("send_message", object{"session_id": from, "message": "to me"})
	if text, _, isError := me.callOnce("read_messages", object{"wait_seconds": 20}); isError || !strings.Contains(text, `"to me"`) {
		t.Fatalf("read %s", text)
	}
	if _, err := db.Exec(`DROP TRIGGER broken`); err != nil {
		t.Fatal(err)
	}
	peer.do("send_message", object{"session_id": from, "message": "to me again"})
	if got := me.do("read_messages", object{"wait_seconds": 20}); len(got["receipts"].([]any)) != 1 || len(got["messages"].([]any)) != 1 {
		t.Errorf("later the result is %v", got)
	}
}
