//go:build e2e

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// frailServer is a server with a child process.
const frailServer = `
sleep 1000 >/dev/null &
while read -r line; do
	id=${line#*\"id\":}
	id=${id%%,*}
	case $line in
	*'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}}' ;;
	*'"method":"tools/call"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"content":[{"type":"text","text":"done"}]}}' ;;
	esac
done`

// testKills kills servers and attache during calls, and checks that each call gets one answer and that no process
// is left. E2E_KILLS is the number of kills.
func (l *lab) testKills(t *testing.T) {
	kills := 40
	if n := os.Getenv("E2E_KILLS"); n != "" {
		var err error
		if kills, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for done := 0; done < kills && !t.Failed(); {
		t.Run(fmt.Sprintf("%d/%d", seed, done), func(t *testing.T) { done += l.killAtRandom(t, random) })
	}
}

// killAtRandom kills the server of a session several times during calls, and finally kills or stops attache. It
// returns the number of kills.
func (l *lab) killAtRandom(t *testing.T, random *rand.Rand) (kills int) {
	s := l.start(t, l.through([]string{"sh", "-c", frailServer}, "--log-level", "error"))
	timer := time.AfterFunc(2*maxWait, func() { _ = s.cmd.Process.Kill() }) // a call that hangs fails the test
	defer timer.Stop()
	s.initialize(t)
	s.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	s.send(t, `{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"x"}}`)
	s.awaitAnswers(t, 0, 1) // until then, the end of the server would end the session
	id := 1
	for range 1 + random.IntN(4) {
		calls := 1 + random.IntN(4)
		at := random.IntN(calls + 1)
		for i := range calls {
			if i == at {
				kills += s.killServer(random)
			}
			s.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, id+i))
		}
		s.awaitAnswers(t, id, calls)
		id += calls
	}
	kills += s.killServer(random) // attache has to exit while it restarts the server
	switch random.IntN(3) {
	case 0:
		s.stdin.Close()
	case 1:
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
	default:
		s.awaitServer(t, id) // during its start, only the server itself is sure to end with attache
		_ = s.cmd.Process.Kill()
	}
	if left := s.mark.gone(maxWait); len(left) > 0 {
		t.Errorf("still running:\n%s\n--- stderr\n%s", strings.Join(left, "\n"), s.stderrTail())
	}
	return max(kills, 1)
}

// awaitServer calls the server until it answers.
func (s *startedCommand) awaitServer(t *testing.T, id int) {
	t.Helper()
	for line := []byte(nil); !bytes.Contains(line, []byte(`"done"`)); id++ {
		s.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, id))
		var err error
		if line, err = s.stdout.ReadBytes('\n'); err != nil {
			t.Fatalf("%v\n--- stderr\n%s", err, s.stderrTail())
		}
	}
}

// killServer kills one process of the session, but not attache.
func (s *startedCommand) killServer(random *rand.Rand) int {
	pids := slices.DeleteFunc(s.mark.alive(), func(pid int) bool { return pid == s.cmd.Process.Pid })
	if len(pids) == 0 {
		return 0
	}
	_ = syscall.Kill(pids[random.IntN(len(pids))], syscall.SIGKILL) // it may have exited
	return 1
}

func (s *startedCommand) send(t *testing.T, line string) {
	t.Helper()
	if _, err := s.stdin.Write([]byte(line + "\n")); err != nil {
		t.Fatalf("%v\n--- stderr\n%s", err, s.stderrTail())
	}
}

// awaitAnswers reads one answer to each of n calls.
func (s *startedCommand) awaitAnswers(t *testing.T, first, n int) {
	t.Helper()
	answered := map[int]bool{}
	for range n {
		line, err := s.stdout.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%d of %d answers, then %v\n--- stderr\n%s", len(answered), n, err, s.stderrTail())
		}
		answer := struct{ ID int }{-1}
		if err := json.Unmarshal(line, &answer); err != nil || answer.ID < first || answer.ID >= first+n || answered[answer.ID] {
			t.Fatalf("not the only answer to one of the calls %d to %d: %s", first, first+n-1, line)
		}
		answered[answer.ID] = true
	}
}
