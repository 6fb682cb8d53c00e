package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/middleware/audit"
	"github.com/attache-mcp/attache/middleware/teams"
	"github.com/attache-mcp/attache/proxy/child"
	"github.com/attache-mcp/attache/sessionstate/database"
	store "github.com/attache-mcp/attache/sessionstate/teams"
)

const (
	// killAfter is how long an agent may run after SIGTERM.
	killAfter = 10 * time.Second
	// checkEvery is how often a supervisor checks whether its session was ended.
	checkEvery = 500 * time.Millisecond
	// serverEvery is how often it checks if the database does not signal changes.
	serverEvery = 5 * time.Second
	// reportTime is how long a supervisor tries to report the end, and reportEvery how often.
	reportTime, reportEvery = 10 * time.Minute, 5 * time.Second
	// retryTime is how long it retries to reach the registry before that, and retryEvery how often.
	retryTime, retryEvery = 30 * time.Second, 200 * time.Millisecond
)

// Supervise runs the agent of the order that it reads from stdin, and reports its end to the registry.
// When the agent has started or failed to start, it writes a line to stdout and closes it. If ctx ends,
// it stops the agent.
func Supervise(ctx context.Context, stdin io.Reader, stdout io.WriteCloser) error {
	var o order
	if err := json.NewDecoder(stdin).Decode(&o); err != nil {
		return fmt.Errorf("this command is for attache itself; see \"attache agents --help\": %w", err)
	}
	db, err := o.open()
	if err != nil {
		return err
	}
	defer db.Close()
	s := &supervisor{o: o, db: db, began: time.Now(), audit: openAudit(o)}
	if err := s.start(); err != nil {
		e := notStarted(err)
		s.recordEnd(e)
		fmt.Fprintln(stdout, strings.Join(strings.Fields(err.Error()), " "))
		_ = stdout.Close()
		s.report(e)
		return err
	}
	fmt.Fprintln(stdout, started)
	_ = stdout.Close()
	e := s.ending(s.watch(ctx))
	s.recordEnd(e)
	s.report(e)
	return nil
}

func (o *order) open() (*store.Store, error) {
	options := store.Options{Path: o.Store}
	if o.StoreURL != "" {
		server, err := database.Connect(database.ServerOptions{URL: o.StoreURL})
		if err != nil {
			return nil, err
		}
		options.Server = server // its connections are closed when the process ends
	}
	return store.Open(context.Background(), options)
}

// A supervisor supervises one run of an agent.
type supervisor struct {
	o      order
	db     *store.Store
	audit  *audit.Shared  // nil for none
	me     *store.Session // at the start of the run
	began  time.Time
	out    *output
	errOut *output
	agent  *child.Process
	read   chan struct{} // closed when the agent's stdout was read to its end

	settled chan struct{} // closed when the messages for the agent are settled; nil before it runs

	reportEvery time.Duration // the constant if 0
}

// start starts the agent, and writes the messages that wait for it to its stdin.
func (s *supervisor) start() (err error) {
	if err := retry(retryEvery, func() (err error) { s.me, err = s.db.Session(context.Background(), s.o.Run.Ref); return err }); err != nil {
		return err
	}
	if s.me.State == store.Ended { // its messages are gone, so the agent would run without a task
		return errors.New("the session was ended")
	}
	if err := s.recordStart(); err != nil {
		return err
	}
	dir, err := beginRun(s.o.Outputs, s.o.Run.ID, store.Retention)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("run-%d", s.o.Run.Run))
	if s.out, err = newOutput(name + ".out"); err != nil {
		return err
	}
	if s.errOut, err = newOutput(name + ".err"); err != nil {
		return err
	}
	var taking *store.Taking
	// An attempt that failed may have taken the messages. They are available again when its lease ends.
	err = retry(store.InboxLease+retryEvery, func() (err error) {
		taking, err = s.db.Take(context.Background(), s.o.Run.Ref, store.TakeOption{Limit: store.ReadLimit})
		return err
	})
	if err != nil {
		return err
	}
	s.agent, err = child.Start(context.Background(), child.Options{
		Argv: s.o.Argv, Env: s.o.Env, Dir: s.o.Dir, Stderr: s.errOut, Grace: -1, TermGrace: killAfter,
	})
	if err != nil {
		_ = s.db.Settle(context.Background(), taking, store.NotSent, s.o.Run.ID)
		return err
	}
	if err := retry(retryEvery, func() error { return s.db.MarkRunning(context.Background(), s.o.Run, "") }); err != nil {
		s.agent.Stop(context.Background())
		return err
	}
	s.read, s.settled = make(chan struct{}), make(chan struct{})
	go s.prompt(taking)
	go s.readOutput()
	return nil
}

// prompt writes the messages to the agent's stdin and settles them. While the registry is not
// available, it tries again: messages that are not settled would start the agent again.
func (s *supervisor) prompt(taking *store.Taking) {
	defer close(s.settled)
	_, err := io.WriteString(s.agent.Stdin(), prompt(s.me, taking, time.Now()))
	s.agent.CloseStdin()
	outcome := store.Arrived
	if err != nil {
		outcome = store.Unread
	}
	for errors.Is(s.db.Settle(context.Background(), taking, outcome, s.o.Run.ID), store.ErrUnavailable) {
		time.Sleep(retryEvery)
	}
	if outcome == store.Arrived {
		_ = s.db.MarkSeen(context.Background(), taking)
	}
}

// prompt returns the text for an agent's stdin.
func prompt(me *store.Session, taking *store.Taking, now time.Time) string {
	var b strings.Builder
	var others []store.Message
	for _, m := range taking.Messages {
		if m.Kind != store.First {
			others = append(others, m)
			continue
		}
		fmt.Fprintf(&b, "You run as the session %s %q. The session %s, of another agent, has created you. That agent, and not a user, has written what follows. "+
			"Answer by ending: your last message is reported to it.\n\n%s\n", me.ID, me.Title, m.From, teams.Clean(m.Body))
	}
	if len(others) > 0 {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		b.WriteString(teams.Block(others, taking.Remaining, now))
		b.WriteString("\nThese messages have come for your session. Answer by ending: your last message is reported to the session that created you.\n")
	}
	return b.String()
}

// readOutput copies the agent's stdout to its file, and records the session id that the agent's
// program chooses.
func (s *supervisor) readOutput() {
	defer close(s.read)
	out := io.TeeReader(s.agent.Stdout(), s.out)
	if s.o.Result == codexJSONL {
		if id := findThread(out); id != "" {
			_ = s.db.MarkRunning(context.Background(), s.o.Run, id)
		}
	}
	_, _ = io.Copy(io.Discard, out)
}

// watch returns when the agent has ended or was stopped. why is the reason for stopping it, or "" if
// it ended by itself.
func (s *supervisor) watch(ctx context.Context) (why string) {
	limit, check := time.After(s.o.TimeLimit), time.Tick(checkEvery)
	var version store.Version
	var renewed, cutOff time.Time // cutOff is when the run was last renewed after its lease had ended
	for {
		select {
		case <-s.agent.Done():
			return ""
		case <-ctx.Done():
			return s.stop("stopped")
		case <-limit:
			return s.stop("killed after " + s.o.TimeLimit.String())
		case <-check:
		}
		now, err := s.db.Version(ctx, serverEvery)
		if err != nil || now == version && time.Since(renewed) < store.RenewEvery {
			continue
		}
		v, err := s.db.RenewRun(context.Background(), s.o.Run)
		if err != nil {
			continue // the lease is long enough for three attempts
		}
		// Round removes the monotonic clock, which stops while the machine sleeps.
		if !renewed.IsZero() && time.Since(renewed.Round(0)) > store.Lease {
			cutOff = time.Now()
		}
		version, renewed = now, time.Now()
		switch {
		case v.Over:
			return s.stop("ended")
		case time.Since(cutOff) < store.Lease: // the parent's processes may not have renewed their leases yet either
		case v.ParentOver && s.o.OnParentEnd == "stop":
			return s.stop("stopped, as the session that created it is over")
		}
	}
}

// stop stops the agent and all processes that it started, and returns why.
func (s *supervisor) stop(why string) string {
	_ = s.db.MarkRunning(context.Background(), s.o.Run, "") // stopping can take a while
	s.agent.Stop(context.Background())
	return why
}

// ending waits for the agent and its output to end, and returns how the run ended.
func (s *supervisor) ending(why string) store.Ending {
	<-s.read
	exit := s.agent.Wait()
	s.agent.CloseStdin() // unblocks prompt if another process has the other end
	took := time.Since(s.began).Round(100 * time.Millisecond)
	r := s.out.result(s.o.Result)
	e := store.Ending{ExitStatus: exit.Status(), CostUSD: r.cost, Failed: why != "" || exit.Status() != 0 || r.failed}
	facts := exit.String()
	if r.cost != "" {
		facts += ", " + r.cost + " USD"
	}
	if s.out.err != nil {
		facts += ", its output is incomplete: " + cli.Reason(s.out.err).Error()
	}
	switch {
	case why != "":
		e.Report = fmt.Sprintf("%s, after %s (%s)", why, took, facts)
	case e.Failed:
		e.Report = fmt.Sprintf("failed after %s (%s)", took, facts)
	default:
		e.Report = fmt.Sprintf("finished after %s (%s)", took, facts)
	}
	text := r.text
	if text == "" && e.Failed {
		text = strings.Join(s.agent.Tail(), "\n")
	}
	if text != "" {
		e.Report += ":\n" + store.Beginning(text, store.MaxMessage)
	}
	return e
}

// report reports the end of the run to the parent. While the registry is not available, it retries,
// and saves the end in a file for other processes to report.
func (s *supervisor) report(e store.Ending) {
	end := &spooledEnd{s.db.Address(), s.o.Run, e}
	for until, first := time.Now().Add(reportTime), true; ; first = false {
		if s.isSettled() && end.send(context.Background(), s.db, s.o.Outputs) == nil || time.Now().After(until) {
			return
		}
		if first {
			_ = end.write(s.o.Outputs) // otherwise it would be lost if this process ends
		}
		time.Sleep(cmp.Or(s.reportEvery, reportEvery))
	}
}

// isSettled reports whether the messages for the agent are settled. It waits for that, but not long.
func (s *supervisor) isSettled() bool {
	if s.settled == nil {
		return true
	}
	select {
	case <-s.settled:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// retry calls f again while the registry is not available, so that a run does not fail because of a
// short interruption.
func retry(every time.Duration, f func() error) error {
	for until := time.Now().Add(retryTime); ; time.Sleep(every) {
		if err := f(); !errors.Is(err, store.ErrUnavailable) || time.Now().After(until) {
			return err
		}
	}
}
