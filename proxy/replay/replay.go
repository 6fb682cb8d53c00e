// Package replay plays a recorded session through a relay and compares what
// comes out with what came out then.
//
// The client and the server of the recording are played in memory: what they sent
// goes in again, in the same order, and nothing is sent before what was seen
// before it has come out again. What reaches either peer is compared byte for
// byte. Lines that went to one peer at the same time, such as a reply and a
// request of attache's own, may change places.
//
// A server that ended under its client ends again, and another one starts in its place when it
// did then. What a recording cannot tell is how long something took: a call that waited in vain
// for a server, or came in a crash loop, is not answered. A line too long to be held was not
// recorded.
package replay

import (
	"bytes"
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

// Options say through what a session is played.
type Options struct {
	// Proxy is the relay. ClientIn, ClientOut and Start are set by Play, and
	// IDPrefix to that of the recording.
	Proxy proxy.Options

	// Scrub, if not nil, is applied to what comes out before it is compared, as it
	// was when it was recorded.
	Scrub func(line []byte) []byte

	// Patience is how long a line that was recorded may take to come out; 0 stands
	// for 2 s.
	Patience time.Duration
}

const defaultPatience = 2 * time.Second

// grace is how long a line may take once one has not come, or has changed.
const grace = 100 * time.Millisecond

// A Result is the result of playing a session.
type Result struct {
	// Differences between the recording and what came out, in order.
	Differences []Difference
	// Session is the recording with what came out today.
	Session *record.Session
}

// ErrOversize is returned for a recording with a line that was too long to be
// held.
var ErrOversize = errors.New("the recording lacks a line that was too long to be held: record it again with a larger limits.hold")

// Play plays a session. An error says why it could not be played.
func Play(ctx context.Context, s *record.Session, o Options) (*Result, error) {
	for _, e := range s.Events {
		if e.Line == nil {
			return nil, ErrOversize
		}
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	p := newPlay(s, o)
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return &Result{Differences: p.compare(), Session: p.today()}, nil
}

// A play is a session being played.
type play struct {
	s   *record.Session
	o   Options
	up  *server    // the last one
	out [2]*stream // to the server, to the client

	starts chan *server // those that were started and that the relay has not asked for

	window int
	late   bool // a line has been missed

	reads atomic.Bool // the recorded client got answers after it had closed its end
}

// The indices of play.out.
const (
	toServer = iota
	toClient
)

// A stream is what reaches one peer.
type stream struct {
	at      string
	pipe    *mempipe.Pipe
	want    []line
	got     []line
	settled int   // how many lines of want have been waited for
	free    []int // the lines of got that nobody has wanted
}

// A line is one that reached a peer, or should have.
type line struct {
	raw    []byte
	event  int // its index in the recording, for want
	window int // between which inputs
}

func newPlay(s *record.Session, o Options) *play {
	p := &play{s: s, o: o, starts: make(chan *server, len(s.Events)+1)}
	p.out[toServer] = &stream{at: record.ServerIn}
	p.provide(time.Now())
	p.out[toClient] = &stream{at: record.ClientOut, pipe: mempipe.New(0)}
	return p
}

// run sends what the peers sent, and waits for what they got.
func (p *play) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in := mempipe.New(0)
	over := make(chan error, 1)
	o := p.o.Proxy
	o.ClientIn, o.ClientOut = in, p.out[toClient].pipe
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
		case record.ServerIn:
			p.want(toServer, i)
		case record.ClientOut:
			p.want(toClient, i)
		}
		if err != nil {
			return err
		}
	}
	p.settle()
	return p.end(in, over)
}

// isInput reports whether an event is something that the play does, and does not wait for.
func isInput(at string) bool { return at != record.ServerIn && at != record.ClientOut }

func (p *play) want(to, i int) {
	s := p.out[to]
	s.want = append(s.want, line{p.s.Events[i].Line, i, p.window})
}

// settle waits until all that was seen so far has come out, and opens a new
// window if anything was seen since the last.
func (p *play) settle() {
	waited := false
	for _, s := range p.out {
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

// match takes a line that has come out and is l, if there is one.
func (s *stream) match(l line) bool {
	for k, i := range s.free {
		if equal(s.got[i], l) {
			s.free = slices.Delete(s.free, k, k+1)
			return true
		}
	}
	return false
}

// read takes the next line of a stream; false if none comes. Where as many lines
// have come as were recorded, another one is only waited for a moment: most often
// one has changed.
func (p *play) read(s *stream) bool {
	limit := p.o.Patience
	if p.late || len(s.got) >= len(s.want) {
		limit = min(limit, grace)
	}
	raw, err := s.pipe.ReadLine(limit)
	if err != nil {
		p.late = true
		return false
	}
	p.take(s, raw)
	return true
}

func (p *play) take(s *stream, raw []byte) {
	if p.o.Scrub != nil {
		raw = p.o.Scrub(raw)
	}
	s.free = append(s.free, len(s.got))
	s.got = append(s.got, line{raw: raw, window: p.window})
}

// end ends the session as a client does that has said all, and takes what comes
// out that was not recorded.
func (p *play) end(in *mempipe.Pipe, over <-chan error) error {
	p.reads.Store(len(p.out[toClient].want) > len(p.out[toClient].got))
	in.CloseWrite()
	var err error
	select {
	case <-p.up.Stopping(): // by its input's end
		p.drain(p.out[toServer]) // what is in the pipe is lost when the server is gone
		p.up.Exit(nil)
		err = <-over
	case err = <-over: // no server was started
		p.up.Exit(nil)
	}
	p.out[toClient].pipe.CloseWrite()
	p.drain(p.out[toClient])
	if err != nil {
		return fmt.Errorf("the session ended early: %w", err)
	}
	return nil
}

// drain takes what is left in a stream.
func (p *play) drain(s *stream) {
	for {
		raw, err := s.pipe.ReadLine(0)
		if err != nil {
			return
		}
		p.take(s, raw)
	}
}

// today returns the recording with the lines that came out in the places of
// those that came out then.
func (p *play) today() *record.Session {
	out := &record.Session{Header: p.s.Header}
	next := [2]int{}
	emit := func(to, window int, t float64) {
		s := p.out[to]
		for ; next[to] < len(s.got) && s.got[next[to]].window <= window; next[to]++ {
			out.Events = append(out.Events, record.Event{T: t, At: s.at, Line: s.got[next[to]].raw})
		}
	}
	p.each(func(e record.Event, window int, last bool) {
		if isInput(e.At) {
			out.Events = append(out.Events, e)
		}
		if last {
			emit(toServer, window, e.T)
			emit(toClient, window, e.T)
		}
	})
	return out
}

// each calls f with each event and its window; last says that the next event is
// of another.
func (p *play) each(f func(e record.Event, window int, last bool)) {
	windows := make([]int, len(p.s.Events))
	for _, s := range p.out {
		for _, l := range s.want {
			windows[l.event] = l.window
		}
	}
	for i := len(windows) - 1; i >= 0; i-- {
		if isInput(p.s.Events[i].At) {
			windows[i] = p.window
			if i+1 < len(windows) {
				windows[i] = windows[i+1]
			}
		}
	}
	for i, e := range p.s.Events {
		last := i+1 == len(windows)
		w := windows[i]
		if last {
			w = p.window
		}
		f(e, w, last || windows[i+1] != windows[i])
	}
}

// A Difference is a line that is not as it was.
type Difference struct {
	At    string // which peer it reached: record.ServerIn or record.ClientOut
	Event int    // its index in the recording, -1 if it was not there
	// Want is nil for a line that was not recorded, Got for one that did not come.
	Want, Got []byte
}

// String tells a person of the difference, in several lines.
func (d Difference) String() string {
	switch {
	case d.Want == nil:
		return fmt.Sprintf("%s: a line that was not recorded\n  got  %s", d.At, shown(d.Got))
	case d.Got == nil:
		return fmt.Sprintf("%s: a line that did not come\n  want %s", d.At, shown(d.Want))
	}
	return fmt.Sprintf("%s: another line\n%s", d.At, record.Diff(d.Want, d.Got))
}

// shownBytes bounds what is shown of a line that has no counterpart.
const shownBytes = 2000

func shown(b []byte) string {
	b = bytes.TrimSuffix(b, []byte{'\n'})
	if len(b) > shownBytes {
		return fmt.Sprintf("%s… (%d bytes)", record.Printable(b[:shownBytes]), len(b))
	}
	return record.Printable(b)
}
