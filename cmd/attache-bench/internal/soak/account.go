package soak

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An outcome is what a client knows about the execution of its call.
type outcome byte

const (
	unknown  outcome = iota // the call may have been executed
	executed                // its result arrived
	unsent                  // an error said that it did not reach the server
)

// An account records all requests of a run with their outcomes, and the faults.
type account struct {
	began time.Time
	log   io.Writer

	mu       sync.Mutex
	outcomes []outcome      // by the number of the request
	answers  map[answer]int // how often clients got each answer
	events   map[string]int // disturbances
	faults   []string
	more     int // faults that are not in the list
}

type answer struct{ client, kind string }

func newAccount(log io.Writer) *account {
	return &account{began: time.Now(), log: log, answers: map[answer]int{}, events: map[string]int{}}
}

// next returns the number of a new request.
func (a *account) next() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcomes = append(a.outcomes, unknown)
	return len(a.outcomes) - 1
}

// note records the answer to a request of a client, and the outcome.
func (a *account) note(client string, number int, kind string, o outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers[answer{client, kind}]++
	a.outcomes[number] = o
}

// served reports whether at least that many kinds of clients have at least that many results each.
func (a *account) served(clients, results int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for got, n := range a.answers {
		if got.kind == "result" && n >= results {
			clients--
		}
	}
	return clients <= 0
}

func (a *account) count(event string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events[event]++
}

// maxFaults is the number of faults that are listed.
const maxFaults = 50

// fault records a fault of attache.
func (a *account) fault(format string, args ...any) {
	text := fmt.Sprintf("%v: ", time.Since(a.began).Round(time.Millisecond)) + fmt.Sprintf(format, args...)
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.faults) >= maxFaults {
		a.more++
		return
	}
	a.faults = append(a.faults, text)
	fmt.Fprintln(a.log, "FAULT", text)
}

// checkLedger compares the calls that servers executed with the outcomes, and returns the number
// of executed calls.
func (a *account) checkLedger(path string) (lines int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	ran := make([]int, len(a.outcomes))
	in := bufio.NewScanner(f)
	for ; in.Scan(); lines++ {
		n, err := strconv.Atoi(strings.Trim(in.Text(), "k."))
		if err != nil || n >= len(ran) {
			a.fault("the server executed %q, which no client sent", in.Text())
			continue
		}
		ran[n]++
	}
	for n, times := range ran {
		switch {
		case times > 1:
			a.fault("request %d was executed %d times", n, times)
		case times == 0 && a.outcomes[n] == executed:
			a.fault("request %d has a result, and was not executed", n)
		case times == 1 && a.outcomes[n] == unsent:
			a.fault("request %d was executed, though its error said that it was not sent", n)
		}
	}
	return lines, in.Err()
}

var digits = regexp.MustCompile(`[0-9]+`)

// kindOf shortens the text of an error to the part that similar errors share.
func kindOf(text string) string {
	text, _, _ = strings.Cut(text, "; ")
	if text = digits.ReplaceAllString(text, "N"); len(text) > 90 {
		text = text[:90] + "…"
	}
	return text
}

// table returns the lines of the table of answers, and the number of answers.
func (a *account) table() (lines []string, total int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for got, n := range a.answers {
		lines = append(lines, fmt.Sprintf("| %s | %s | %d |", got.client, got.kind, n))
		total += n
	}
	slices.Sort(lines)
	return lines, total
}
