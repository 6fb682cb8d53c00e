package teams_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attache-mcp/attache/internal/testkit"
	"github.com/attache-mcp/attache/sessionstate/teams"
)

// A role is the work of a process in a test. It prints a line for each step.
type role func(t *testing.T, s *teams.Store, arg string)

var check = testkit.Check

func roles() map[string]role {
	return map[string]role{"create": createAs, "send": sendAs, "take": takeAs}
}

// TestAsProcess is not a test, but the program of the processes that tests start.
func TestAsProcess(t *testing.T) {
	path := os.Getenv("TEAMS_TEST_FILE")
	if path == "" {
		t.Skip("for processes of other tests")
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test closes the gate's pipe
	roles()[os.Getenv("TEAMS_TEST_ROLE")](t, openAt(t, path, fast), os.Getenv("TEAMS_TEST_ARG"))
}

// fast is a clock with ten times the normal speed, so that leases expire earlier.
func fast() time.Time {
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return begun.Add(10 * time.Since(begun))
}

// A process is a process that a test started.
type process struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

// start starts a process that waits until stdin ends.
func start(t *testing.T, stdin *os.File, path, role, arg string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAsProcess$")
	cmd.Env = append(os.Environ(), "TEAMS_TEST_FILE="+path, "TEAMS_TEST_ROLE="+role, "TEAMS_TEST_ARG="+arg)
	cmd.Stdin, cmd.Stderr = stdin, os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	check(t, err)
	return &process{cmd, bufio.NewScanner(out)}
}

// lines waits for the end of the process and returns its lines with the given first word.
func (p *process) lines(t *testing.T, word string) (all []string) {
	t.Helper()
	for p.out.Scan() {
		if rest, ok := strings.CutPrefix(p.out.Text(), word+" "); ok {
			all = append(all, rest)
		} else if p.out.Text() != "PASS" {
			t.Log(p.out.Text())
		}
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	return all
}

// newFile returns a function that returns the path of a new file.
func newFile(t *testing.T) func() string {
	dir, n := t.TempDir(), 0
	return func() string { n++; return filepath.Join(dir, "new", fmt.Sprint(n), "teams.db") }
}

// gate returns the stdin at which processes wait, and a function that lets them run.
func gate(t *testing.T) (stdin *os.File, open func()) {
	t.Helper()
	r, w, err := os.Pipe()
	check(t, err)
	return r, func() { _, _ = r.Close(), w.Close() }
}

// Limits are exact if 10 processes compete: of 30 children of one parent 10 are created, of 10
// children within a second one, and of children of ten parents all.
func TestLimitsOverProcesses(t *testing.T) { t.Parallel(); testLimitsOverProcesses(t, newFile(t)) }

func testLimitsOverProcesses(t *testing.T, at func() string) {
	for _, test := range []struct {
		name      string
		each      int
		every     string
		oneParent bool
		want      int
	}{
		{"10 of 30", 3, "0s", true, 10},
		{"1 of 10 in a second", 1, "1h", true, 1},
		{"ten parents", 1, "1s", false, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := at()
			s := openAt(t, path, fast)
			stdin, release := gate(t)
			var all []*process
			for i := range 10 {
				key := "parent"
				if !test.oneParent {
					key = fmt.Sprint("parent ", i)
				}
				person(t, s, key)
				all = append(all, start(t, stdin, path, "create", fmt.Sprintf("%s\n%d\n%s", key, test.each, test.every)))
			}
			release()
			made := 0
			for _, p := range all {
				made += len(p.lines(t, "made"))
			}
			if made != test.want {
				t.Errorf("%d sessions were created, want %d", made, test.want)
			}
		})
	}
}

// person registers a session. With so many processes on two processors, the file may be locked for
// longer than a call waits, so person tries again like an agent.
func person(t *testing.T, s *teams.Store, key string) teams.Ref {
	t.Helper()
	for {
		found, err := s.Attach(t.Context(), teams.Claim{Key: key, Workspace: "w", Trust: "direct"}, teams.Attachment{Instance: fmt.Sprint(os.Getpid())})
		switch {
		case err == nil:
			return found.Ref
		case !errors.Is(err, teams.ErrUnavailable):
			t.Fatal(err)
		}
	}
}

func createAs(t *testing.T, s *teams.Store, arg string) {
	var each int
	words := strings.Split(arg, "\n")
	_, _ = fmt.Sscan(words[1], &each)
	every, _ := time.ParseDuration(words[2])
	l := teams.DefaultLimits()
	l.SpawnEvery = every
	parent := person(t, s, words[0])
	for i := range each {
		key := fmt.Sprint("child ", os.Getpid(), " ", i)
		create := func() error {
			_, _, err := s.Create(t.Context(), parent, teams.Child{Title: "a", Agent: "a", Message: "m", Key: key, Token: key}, l)
			return err
		}
		err := create()
		for errors.Is(err, teams.ErrUnavailable) { // see person
			err = create()
		}
		var refusal teams.Refusal
		switch {
		case err == nil:
			fmt.Println("made it")
		case !errors.As(err, &refusal):
			t.Error(err)
		}
	}
}

// 5 senders send 1,000 messages to one session. Two processes take some and are killed before they
// settle them; then 5 others take all. None is lost, and those taken twice are marked.
func TestTakersOverProcesses(t *testing.T) { t.Parallel(); testTakersOverProcesses(t, newFile(t)) }

func testTakersOverProcesses(t *testing.T, at func() string) {
	path := at()
	s, done := openAt(t, path, fast), filepath.Join(t.TempDir(), "done")
	person(t, s, "target")
	stdin, release := gate(t)
	takersStdin, releaseTakers := gate(t)
	var senders, takers, victims []*process
	for i := range 5 {
		senders = append(senders, start(t, stdin, path, "send", fmt.Sprint(i)))
		takers = append(takers, start(t, takersStdin, path, "take", done))
	}
	for range 2 {
		victims = append(victims, start(t, stdin, path, "take", "hold"))
	}
	release()
	killed := map[string]bool{}
	for _, v := range victims { // the second one waits for the end of the first one's lease
		for v.out.Scan() && v.out.Text() != "holding" {
			if id, holds := strings.CutPrefix(v.out.Text(), "got "); holds {
				killed[strings.Fields(id)[0]] = true
			}
		}
		_ = v.cmd.Process.Kill()
		_ = v.cmd.Wait()
	}
	releaseTakers() // not earlier, or a slow taker would lose its lease to a victim
	var sent []string
	for _, p := range senders {
		sent = append(sent, p.lines(t, "sent")...)
	}
	for target := person(t, s, "target"); ; time.Sleep(50 * time.Millisecond) {
		left, err := s.Session(t.Context(), target)
		if err == nil && left.Queued == 0 {
			break
		}
		if err != nil && !errors.Is(err, teams.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	check(t, os.WriteFile(done, nil, 0o600))
	first, again := map[string]int{}, map[string]bool{}
	for _, p := range takers {
		for _, line := range p.lines(t, "got") {
			id, marked, _ := strings.Cut(line, " ")
			if marked == "again" {
				again[id] = true
			} else {
				first[id]++
			}
		}
	}
	if len(sent) != messagesSent() {
		t.Fatalf("%d messages were sent, want %d", len(sent), messagesSent())
	}
	for _, id := range sent {
		switch {
		case first[id] == 0 && !again[id]:
			t.Errorf("message %s is lost", id)
		case first[id] > 1:
			t.Errorf("message %s was taken %d times without the mark", id, first[id])
		case killed[id] && (first[id] > 0 || !again[id]):
			t.Errorf("message %s, which a killed process had taken, is not marked", id)
		}
	}
	if len(killed) == 0 {
		t.Error("no killed process had taken a message")
	}
}

// messagesSent returns how many messages the senders of testTakersOverProcesses send. If the variable
// CI is set, there are more, which cost 20 s.
func messagesSent() int {
	if os.Getenv("CI") != "" {
		return 1000
	}
	return 200
}

// sendAs sends its part of the messages, three from each session, which is the limit for ten seconds.
func sendAs(t *testing.T, s *teams.Store, arg string) {
	target := person(t, s, "target")
	var from teams.Ref
	for i := range messagesSent() / 5 {
		if i%3 == 0 {
			from = person(t, s, fmt.Sprint("sender ", arg, " ", i))
		}
		for {
			sent, err := s.Send(t.Context(), from, teams.Draft{To: target.ID, Body: fmt.Sprint(arg, " ", i)})
			if errors.Is(err, teams.ErrFull) || errors.Is(err, teams.ErrUnavailable) {
				time.Sleep(50 * time.Millisecond)
				continue
			}
			check(t, err)
			fmt.Println("sent", sent.ID)
			break
		}
	}
}

// takeAs takes messages until none is left, or takes some and holds them until it is killed.
func takeAs(t *testing.T, s *teams.Store, arg string) {
	target := person(t, s, "target")
	for {
		newest, err := s.Mail(t.Context(), target)
		if err != nil && !errors.Is(err, teams.ErrUnavailable) {
			t.Fatal(err)
		}
		if err != nil || newest == 0 {
			if _, no := os.Stat(arg); err == nil && no == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
			continue
		}
		taking, err := s.Take(t.Context(), target, teams.TakeOption{Limit: 20})
		if err != nil && !errors.Is(err, teams.ErrUnavailable) {
			t.Fatal(err)
		}
		if err != nil || len(taking.Messages) == 0 { // another process holds the inbox
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for _, m := range taking.Messages {
			word := "first"
			if m.Again {
				word = "again"
			}
			fmt.Println("got", m.ID, word)
		}
		if arg == "hold" {
			fmt.Println("holding")
			select {}
		}
		for err := errors.New(""); err != nil; {
			if err = s.Settle(t.Context(), taking, teams.Arrived, fmt.Sprint(os.Getpid())); err != nil && !errors.Is(err, teams.ErrUnavailable) {
				t.Fatal(err)
			}
		}
	}
}
