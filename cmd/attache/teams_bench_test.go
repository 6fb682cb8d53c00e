package main

import (
	"fmt"
	"testing"
)

// The operations with targets in seed 001, as a client sees them: a process of attache, the registry in a
// file, running agents.
func BenchmarkTeams(b *testing.B) {
	t := &testing.T{}
	dir := b.TempDir()
	tm := writeTeam(t, dir, "0s")
	b.Cleanup(tm.stopAgents)
	m := startMember(tm, tm.env(), "teams", "--workspace", dir)
	b.Cleanup(m.leave)
	b.Run("create_session", func(b *testing.B) {
		for range b.N {
			id := m.create("agent", "do await end")["session_id"]
			b.StopTimer()
			m.do("end_session", object{"session_id": id})
			m.messages(1)
			b.StartTimer()
		}
	})
	peers := 0
	b.Run("send_message", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			peers++
			peer := startMember(tm, tm.env(), "teams", "--workspace", dir, "--session", fmt.Sprint("peer ", peers))
			to := peer.me()
			b.StartTimer()
			m.do("send_message", object{"session_id": to, "message": "hello"})
			b.StopTimer()
			peer.leave()
			b.StartTimer()
		}
	})
	b.Run("list_100_sessions", func(b *testing.B) {
		for ; peers < 100; peers++ {
			peer := startMember(tm, tm.env(), "teams", "--workspace", dir, "--session", fmt.Sprint("peer ", peers))
			peer.me()
			peer.leave()
		}
		b.ResetTimer()
		for range b.N {
			m.do("list_workspace_sessions", object{"active_only": false})
		}
	})
}
