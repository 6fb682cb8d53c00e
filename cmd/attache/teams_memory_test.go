//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
)

// buildReleased builds attache like a release, and puts it first in PATH.
func buildReleased(b *testing.B, dir string) {
	b.Helper()
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "bin", "attache"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
}

// BenchmarkStartWithTeams measures how much later attache starts with teams enabled: pairs of starts in
// alternating order, up to the answer to initialize.
func BenchmarkStartWithTeams(b *testing.B) {
	dir := b.TempDir()
	buildReleased(b, dir)
	tm := &team{&testing.T{}, dir}
	server := `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'; cat`
	start := func(teams string) time.Duration {
		file := filepath.Join(dir, teams+".yaml")
		attachetest.WriteFile(b, file, "teams: {enabled: "+teams+"}\n")
		begun := time.Now()
		m := startMember(tm, tm.env(), "--config", file, "--workspace-id", "w", "--session", "s", "--", "sh", "-c", server)
		took := time.Since(begun)
		m.leave()
		return took
	}
	var all []time.Duration
	for i := 0; b.Loop(); i++ {
		if i%2 == 0 {
			off := start("false")
			all = append(all, start("true")-off)
		} else {
			on := start("true")
			all = append(all, on-start("false"))
		}
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "µs-later")
}

// BenchmarkSpawnedSession measures attache's memory for a spawned session, without the agent: the memory of
// its supervisor, with as many running as there are rounds.
func BenchmarkSpawnedSession(b *testing.B) {
	dir := b.TempDir()
	buildReleased(b, dir)
	tm := writeTeam(&testing.T{}, dir, "0s")
	config := "teams: {enabled: true, spawn_every: 0s, max_children: 1000, max_sessions: 1000}\nagents: {agent: {command: [sleep, '3600']}}\n"
	attachetest.WriteFile(b, filepath.Join(dir, "config", "attache", "config.yaml"), config)
	b.Cleanup(tm.stopAgents)
	m := startMember(tm, tm.env(), "teams", "--workspace", dir)
	b.Cleanup(m.leave)
	var ids []string
	for b.Loop() {
		ids = append(ids, m.create("agent", "go")["session_id"].(string))
	}
	total := map[string]float64{}
	for _, id := range ids {
		for name, kib := range memory(b, supervisor(tm, id)) {
			total[name] += kib
		}
	}
	mib := func(kib float64) float64 { return kib / 1024 / float64(len(ids)) }
	b.ReportMetric(mib(total["Pss"]), "MiB-pss/session")
	b.ReportMetric(mib(total["Private_Clean"]+total["Private_Dirty"]), "MiB-private/session")
	b.ReportMetric(mib(total["Rss"]), "MiB-rss/session")
}

var memoryLine = regexp.MustCompile(`(?m)^(\w+): +(\d+) kB$`)

// memory returns figures of the kernel about a process's memory, in KiB.
func memory(b *testing.B, pid int) map[string]float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	check(b, err)
	all := map[string]float64{}
	for _, line := range memoryLine.FindAllStringSubmatch(string(text), -1) {
		all[line[1]], _ = strconv.ParseFloat(line[2], 64)
	}
	return all
}
