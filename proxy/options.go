package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy/wire"
)

// An Upstream is the wrapped server as the relay sees it.
type Upstream interface {
	// Stdin takes what the client sends. Closing it tells the server to leave.
	Stdin() io.WriteCloser
	// Stdout is read to its end, unless the server is a [wire.Pusher].
	Stdout() io.Reader
	// Stop ends the server, gently first, and returns when it is gone. It may
	// be called more than once, and while another call is under way.
	Stop()
	// Wait returns when the server is gone. The error tells the client how it ended and, after a
	// semicolon, what else is known; nil stands for a clean exit.
	Wait() error
}

// A Point is a place where lines can be watched.
type Point uint8

// The points, in the order a request and its reply pass them. The last three report a start or an end of
// the upstream; their lines are those of package record.
const (
	ClientIn    Point = iota // read from the client
	ServerIn                 // written to the upstream
	ServerOut                // read from the upstream
	ClientOut                // written to the client
	ServerExit               // the upstream has ended, and not because the session has
	ServerStart              // another upstream has started in its place
	ServerStop               // the upstream has ended because the session has, during calls
)

func (p Point) String() string {
	return [...]string{"client-in", "server-in", "server-out", "client-out", "server-exit", "server-start", "server-stop"}[p]
}

// Options say what to relay and how. ClientIn, ClientOut and Start are required; every other
// zero value is a default.
type Options struct {
	ClientIn  io.Reader
	ClientOut io.Writer

	// ClientLines, if not nil, brings the lines of the client, in place of ClientIn.
	ClientLines wire.Pusher

	// Start starts the upstream. It is called when the first frame is on its way to the
	// upstream, so facts that this frame told the layers can go into the upstream's environment.
	// Its error is the answer to that frame and is returned by Run. With Restart it is called
	// again when the upstream has ended. ctx bounds the start only: the relay itself ends the
	// upstream, with Stop, when the session ends.
	Start func(ctx context.Context) (Upstream, error)

	// Restart, if not nil, says how an upstream that has ended is started again.
	Restart *Restart

	// Layers run on plain frames; the first one sees a frame from the client first. The relay
	// does what each of them needs: see [middleware.Layer].
	Layers []middleware.Layer

	// DryRun sends on, and logs, frames that are otherwise refused because a layer Enforces. The
	// layers themselves must change nothing. A frame with something that a layer has Guarded is
	// still refused.
	DryRun bool

	// Hold is the length in bytes of the longest line that is held whole; 0 means 8 MiB. A
	// longer line is streamed.
	Hold int

	// InFlight is how many calls may be in flight before the client has to wait; 0 means
	// 100,000. Its replies to the server's requests, and its cancellations of calls in flight, still
	// pass, past a bounded number of calls that wait.
	InFlight int

	// ForwardNoise sends lines of the upstream that are no messages to the client. Without it
	// they are dropped and logged.
	ForwardNoise bool

	// ClientGone, if not nil, is closed when the client has hung up. A relay that waits for the
	// upstream to read cannot see that itself. If there is no progress for a while after that,
	// the session ends with ErrClientGone.
	ClientGone <-chan struct{}

	// ClientReads, if not nil, reports whether somebody still reads ClientOut. Then a client that has
	// closed its end gets the answers to its calls, within an hour. If it is nil, attache waits for
	// them a minute at most, and with ClientLines not at all.
	ClientReads func() bool

	// Control, if not nil, lets others act on the session while it runs.
	Control *Control

	// Aside, if not nil, is called with every request, notification and ambiguous frame of the
	// client that layers do not see. It runs in the client's direction and must not block. If it
	// panics, the relay logs the stack, and the session continues.
	Aside func(Aside)

	// Watch, if not nil, is called with every line that passes a point; a line over the hold
	// limit is passed as nil. It must not keep line, and is called from both directions.
	Watch func(at Point, line []byte)

	// IDPrefix begins the ids of attache's own requests; "" means 8 random digits. A replay
	// sets it, so that two runs write the same bytes.
	IDPrefix string

	// Log receives what a person may want to know; nil discards it.
	Log *slog.Logger
}

// ErrStart wraps the error of an upstream that could not be started.
var ErrStart = errors.New("the server could not be started")

// ErrClientGone is what Run returns when the client has hung up and the upstream
// no longer takes what the client had said.
var ErrClientGone = errors.New("the client has hung up and the server does not read")

// errOver is the error of a frame that comes after the end of the session.
var errOver = errors.New("the session is over")

// A Restart says how an upstream that has ended is started again under its client. The
// zero value is ready to use. An upstream may have three methods more: Again() is called when
// it takes the place of another one; Returned() []byte, when its output has ended, for the
// lines that it has taken and its server has not; StartedAt() time.Time says when it was started,
// if that was not now.
type Restart struct {
	// Name is the name of the server in texts for the model.
	Name string

	// Hold is how long a frame waits for the next upstream; 0 means 10 s.
	Hold time.Duration

	// Hang is how long an upstream may write nothing while calls are in flight before it is
	// started again; 0 means no limit.
	Hang time.Duration

	// Notice adds a content block to the next result of a tool, which tells the model that
	// the server has lost its memory.
	Notice bool

	// Quiet reports whether Notice must wait, as in a dry run; nil means that it need not.
	Quiet func() bool

	// Resumed means that the first upstream replaces one that another process had for this
	// session. With Notice the model is told about that too.
	Resumed bool

	// Retry reports whether a call of a tool that may have run may be sent to the next
	// upstream; nil means no call.
	Retry func(tool string) bool

	// Unpaced starts the next upstream at once, however often one has ended. A replay sets
	// it, because the recording defines when a server starts.
	Unpaced bool

	// Wanted reports whether the session continues; nil means yes. A program that has
	// forwarded the signal that ends it returns false.
	Wanted func() bool

	// Changed, if not nil, is called with the method of a list that differs from that of the
	// last upstream, and with the digests of both.
	Changed func(method, before, after string)

	// Restarted, if not nil, is called when the next upstream is ready: how the last one
	// ended, how many calls were answered with an error, and for how long there was none.
	Restarted func(exit string, lost int, down time.Duration)
}
