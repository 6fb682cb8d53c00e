// Package replay plays a recorded session through a relay and compares the output
// with the recorded output.
//
// The client and the server of the recording are played in memory. They send their
// recorded lines in the same order, and each line only after the lines that they had
// received before it. The lines that reach either peer are compared byte for byte. Lines
// that reached one peer at the same time, such as a reply and a request of attache's
// own, may come in another order.
//
// If the server ended during the session, it ends at the same point of the replay, and another
// one starts when it started in the recording. A recording does not show how long something
// took, so a call that waited in vain for a server, or came in a crash loop, is not answered. A
// recording with a line that was too long to be held cannot be played.
package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/mempipe"
	"github.com/attache-mcp/attache/proxy/record"
)

// Options define how a session is played.
type Options struct {
	// Proxy has the options of the relay. Play sets ClientIn, ClientOut and Start,
	// and takes IDPrefix from the recording.
	Proxy proxy.Options

	// Scrub, if not nil, is applied to lines before they are compared, as it was
	// when they were recorded.
	Scrub func(line []byte) []byte

	// Patience is how long to wait for a recorded line; 0 means 2 s.
	Patience time.Duration
}

const defaultPatience = 2 * time.Second

// grace is how long to wait for a line after another one was missing or different.
const grace = 100 * time.Millisecond

// A Result is the result of playing a session.
type Result struct {
	// Differences are the differences between the recording and the output, in order.
	Differences []Difference
	// Session is the recording with the output of this replay.
	Session *record.Session
}

// ErrOversize is returned for a recording with a line that was too long to be
// held.
var ErrOversize = errors.New("the recording lacks a line that was too long to be held: record it again with a larger limits.hold")

// Play plays a session. It returns an error if the session could not be played.
func Play(ctx context.Context, s *record.Session, o Options) (*Result, error) {
	for _, e := range s.Events {
		if e.Line == nil {
			return nil, ErrOversize
		}
	}
	o.Patience = cmp.Or(o.Patience, defaultPatience)
	p := &play{s: s, o: o, starts: make(chan *server, len(s.Events)+1)}
	p.toServer.at = record.ServerIn
	p.provide(time.Now())
	p.toClient.at, p.toClient.pipe = record.ClientOut, mempipe.New(0)
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return &Result{Differences: p.compare(), Session: p.result()}, nil
}

type play struct {
	s  *record.Session
	o  Options
	up *server // the current one

	toServer, toClient stream

	starts chan *server // servers for the relay to start

	window  int   // number of the current window; an input after output begins a new one
	windows []int // the windows of the events so far
	missed  bool  // an expected line did not come

	stopped bool  // the play has reached record.ServerStop
	ended   error // how the server ended then

	reads atomic.Bool // the client reads after it has closed its end
}

// A stream has the lines to one peer.
type stream struct {
	at      string
	pipe    *mempipe.Pipe
	want    []line
	got     []line
	settled int   // how many lines of want were waited for
	free    []int // indices of the lines of got that match no line of want
}

// streams returns the streams in the order in which their lines are compared.
func (p *play) streams() []*stream { return []*stream{&p.toServer, &p.toClient} }

// A line is one that reached a peer, or should have reached it.
type line struct {
	raw    []byte
	event  int // its index in the recording, for want
	window int
}

func equal(a, b line) bool { return bytes.Equal(a.raw, b.raw) }

// run sends the lines that the peers sent, and waits for the lines that they received.
func (p *play) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := mempipe.New(0)
	over := make(chan error, 1)
	o := p.o.Proxy
	o.ClientIn, o.ClientOut = in, p.toClient.pipe
	o.IDPrefix = p.s.Header.IDPrefix
	o.Start = p.start
	o.ClientReads = p.reads.Load
	if o.Restart != nil {
		again := *o.Restart
		again.Unpaced = true
		o.Restart = &again
	}
	go func() { over <- proxy.Run(ctx, o) }()
	for i, e := range p.s.Events {
		if isInput(e.At) {
			p.settle()
		}
		p.windows = append(p.windows, p.window)
		var err error
		switch e.At {
		case record.ClientIn:
			in.Write(e.Line)
		case record.ServerOut:
			p.up.Out.Write(e.Line)
		case record.ServerExit:
			err = p.exit(e)
		case record.ServerStart:
			err = p.next(e)
		case record.ServerStop:
			err = p.stop(e)
		case record.ServerIn:
			p.want(&p.toServer, i)
		case record.ClientOut:
			p.want(&p.toClient, i)
		}
		if err != nil {
			return err
		}
	}
	if !p.stopped { // otherwise the last lines come after the end
		p.settle()
	}
	return p.end(in, over)
}

// isInput reports whether the play causes an event, and does not wait for it.
func isInput(at string) bool { return at != record.ServerIn && at != record.ClientOut }

func (p *play) want(s *stream, i int) {
	s.want = append(s.want, line{p.s.Events[i].Line, i, p.window})
}

// settle waits for all lines that are wanted so far, and begins a new window if there
// were any.
func (p *play) settle() {
	waited := false
	for _, s := range p.streams() {
		for _, l := range s.want[s.settled:] {
			waited = true
			for !s.match(l) && p.read(s) {
			}
		}
		s.settled = len(s.want)
	}
	if waited {
		p.window++
	}
}

// match reports whether l is among the free lines, and removes it from them.
func (s *stream) match(l line) bool {
	k := slices.IndexFunc(s.free, func(i int) bool { return equal(s.got[i], l) })
	if k >= 0 {
		s.free = slices.Delete(s.free, k, k+1)
	}
	return k >= 0
}

// read reads the next line of a stream. It reports false if none comes. If as many
// lines have come as were recorded, it waits only a moment: probably a line has
// changed.
func (p *play) read(s *stream) bool {
	limit := p.o.Patience
	if p.missed || len(s.got) >= len(s.want) {
		limit = min(limit, grace)
	}
	raw, err := s.pipe.ReadLine(limit)
	if err != nil {
		p.missed = true
		return false
	}
	p.add(s, raw)
	return true
}

// add adds a line that has reached a peer.
func (p *play) add(s *stream, raw []byte) {
	if p.o.Scrub != nil {
		raw = p.o.Scrub(raw)
	}
	s.free = append(s.free, len(s.got))
	s.got = append(s.got, line{raw: raw, window: p.window})
}

// end ends the session from the side of the client, and reads the rest of the output.
func (p *play) end(in *mempipe.Pipe, over <-chan error) error {
	p.reads.Store(len(p.toClient.want) > len(p.toClient.got))
	in.CloseWrite()
	var err error
	select {
	case <-p.up.Stopping():
		p.drain(&p.toServer) // before Exit, which discards what is in the pipe
		p.up.Exit(p.ended)
		err = <-over
	case err = <-over: // no server was started
		p.up.Exit(nil)
	}
	p.toClient.pipe.CloseWrite()
	p.drain(&p.toClient)
	if err != nil {
		return fmt.Errorf("the session ended early: %w", err)
	}
	return nil
}

func (p *play) drain(s *stream) {
	for {
		raw, err := s.pipe.ReadLine(0)
		if err != nil {
			return
		}
		p.add(s, raw)
	}
}

// result returns the recording with the output replaced by that of this replay.
func (p *play) result() *record.Session {
	out := &record.Session{Header: p.s.Header}
	next := [2]int{}
	for i, e := range p.s.Events {
		if isInput(e.At) {
			out.Events = append(out.Events, e)
		}
		last := i+1 == len(p.windows)
		if !last && p.windows[i+1] == p.windows[i] {
			continue
		}
		for to, s := range p.streams() {
			for ; next[to] < len(s.got) && (last || s.got[next[to]].window <= p.windows[i]); next[to]++ {
				out.Events = append(out.Events, record.Event{T: e.T, At: s.at, Line: s.got[next[to]].raw})
			}
		}
	}
	return out
}

// A Difference is a line that differs from the recording.
type Difference struct {
	At    string // record.ServerIn or record.ClientOut
	Event int    // its index in the recording, -1 if it was not recorded
	// Want is nil for a line that was not recorded, Got for one that did not come.
	Want, Got []byte
}

// String describes the difference in several lines.
func (d Difference) String() string {
	switch {
	case d.Want == nil:
		return fmt.Sprintf("%s: a line that was not recorded\n  got  %s", d.At, shown(d.Got))
	case d.Got == nil:
		return fmt.Sprintf("%s: a line that did not come\n  want %s", d.At, shown(d.Want))
	}
	return fmt.Sprintf("%s: another line\n%s", d.At, record.Diff(d.Want, d.Got))
}

// shownBytes is how much of a line without a counterpart is shown.
const shownBytes = 2000

func shown(b []byte) string {
	b = bytes.TrimSuffix(b, []byte{'\n'})
	if len(b) > shownBytes {
		return fmt.Sprintf("%s… (%d bytes)", record.Printable(b[:shownBytes]), len(b))
	}
	return record.Printable(b)
}
