package main

import (
	"testing"
	"time"
)

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
