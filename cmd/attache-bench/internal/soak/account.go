//go:build linux

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

// A fate is what a client knows of a call that writes to the ledger.
type fate byte

const (
	unknown  fate = iota // it may have run
	executed             // its result came
	unsent               // an error said that it did not reach the server
)

// An account has all requests of a run, and what became of them.
type account struct {
	began time.Time
	log   io.Writer

	mu     sync.Mutex
	fates  []fate                    // by the number of the request
	kinds  map[string]map[string]int // clients of a kind, and how often they got what
	events map[string]int            // what was done to attache, and how often
	faults []string
	more   int // faults that are not in the list
}

func newAccount(log io.Writer) *account {
	return &account{began: time.Now(), log: log, kinds: map[string]map[string]int{}, events: map[string]int{}}
}

// next returns the number of a new request.
func (a *account) next() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fates = append(a.fates, unknown)
	return len(a.fates) - 1
}

// note counts what a client of a kind got for a request.
func (a *account) note(client string, q *request, what string, f fate) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kinds[client] == nil {
		a.kinds[client] = map[string]int{}
	}
	a.kinds[client][what]++
	a.fates[q.number] = f
}

// served reports whether at least that many kinds of clients have at least that many results each.
func (a *account) served(kinds, results int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, got := range a.kinds {
		if got["result"] >= results {
			kinds--
		}
	}
	return kinds <= 0
}

func (a *account) count(event string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events[event]++
}

// maxFaults is how many faults are reported.
const maxFaults = 50

// fault notes what must not be.
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

// checkLedger compares what servers executed with what clients were told.
func (a *account) checkLedger(path string) (lines int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	ran := make([]int, len(a.fates))
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
		case times == 0 && a.fates[n] == executed:
			a.fault("request %d has a result, and was not executed", n)
		case times == 1 && a.fates[n] == unsent:
			a.fault("request %d was executed, though its error said that it was not sent", n)
		}
	}
	return lines, in.Err()
}

var digits = regexp.MustCompile(`[0-9]+`)

// kindOf shortens an error to what it has in common with others.
func kindOf(text string) string {
	text, _, _ = strings.Cut(text, "; ")
	if text = digits.ReplaceAllString(text, "N"); len(text) > 90 {
		text = text[:90] + "…"
	}
	return text
}

// counts returns the lines of the table of answers.
func (a *account) counts() (rows []string, total int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for client, kinds := range a.kinds {
		for what, n := range kinds {
			rows = append(rows, fmt.Sprintf("| %s | %s | %d |", client, what, n))
			total += n
		}
	}
	slices.Sort(rows)
	return rows, total
}
