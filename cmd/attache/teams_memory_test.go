//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// BenchmarkSpawnedSession measures the memory that attache takes for a session that it has
// started, beside the agent: that of its supervisor, while as many run as there are rounds.
func BenchmarkSpawnedSession(b *testing.B) {
	dir := b.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "bin", "attache"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as released
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	b.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	tm := writeTeam(&testing.T{}, dir, "0s")
	config := "teams: {enabled: true, spawn_every: 0s, max_children: 1000, max_sessions: 1000}\nagents: {agent: {command: [sleep, '3600']}}\n"
	if err := os.WriteFile(filepath.Join(dir, "config", "attache", "config.yaml"), []byte(config), 0o600); err != nil {
		b.Fatal(err)
	}
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

// memory returns what the kernel says of a process's memory, in KiB.
func memory(b *testing.B, pid int) map[string]float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		b.Fatal(err)
	}
	all := map[string]float64{}
	for _, line := range memoryLine.FindAllStringSubmatch(string(text), -1) {
		all[line[1]], _ = strconv.ParseFloat(line[2], 64)
	}
	return all
}
