// Package briefing is the layer that shows the model the policies and objectives of its
// session, once.
//
// There are two channels. The response channel puts the text into the first response of a
// tool; the instructions channel appends it to the server's instructions, in the answer to
// initialize or server/discover. Clients show the model different parts of a server's messages,
// so the layer decides by a table of measurements (package toolresult). Each session has one
// turn. The first message with the text in a place that the client shows uses the turn.
//
// The layer chooses the response on the way back, atomically: of many first calls in flight
// exactly one gets the text. A response that the model would not see as the answer to its call
// does not use the turn (see [toolresult.Response.Unfit]).
//
// The servers of one client are processes of one session. If they know the session, they also
// ask for the turn in Turns that they share ([Options.UserTurns]). Other messages do not wait
// for that.
//
// [Compile] makes the state of a process: the texts of its sessions, each fetched from the
// policy source as soon as the identity is known, so that the first response does not wait for
// it. [Shared.Connect] makes the layer of one client connection.
//
// The layer enriches. Without a key, with a bad key, or while the source is down, the tools
// work, nothing is added, and one warning gives the reason. The block never contains text from
// the upstream.
package briefing

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/middleware/toolresult"
	"github.com/attache-mcp/attache/policy"
	"github.com/attache-mcp/attache/sessionstate"
)

// MarkerKey is the _meta key that marks the block. Its value holds the digest of the text.
const MarkerKey = "io.github.attache-mcp/briefing"

// DefaultWait is how long a first response waits for the briefing.
const DefaultWait = 2 * time.Second

// Options are the options that the connections of a process share.
type Options struct {
	// Source returns the policies. It is asked once per session, for at most 8 sessions at once.
	Source policy.Source
	// Scope is used when the principal has none.
	Scope string
	// Anonymous means that the source answers without a principal's credential: it has
	// the operator's, or needs none.
	Anonymous bool
	// ByWorkspace means that the answer depends on the path of the workspace: the source is asked
	// again if the path becomes known before the briefing was given.
	ByWorkspace bool
	// OmitEmpty adds no block if the source has no policies and no objectives.
	OmitEmpty bool

	// Turns keeps the turns of this process, without blocking; nil means in memory. Pass the
	// same Turns to the next Compile so that no session is briefed again after a configuration
	// reload.
	Turns sessionstate.Turns
	// Before is the value in use before a configuration reload, nil for none. The source is not
	// asked again for the sessions that it has briefed.
	Before *Shared
	// UserTurns opens the Turns that all processes of the user share; nil means that each
	// process gives the briefing. It is called in a goroutine of its own after Turns has given
	// the turn of a session whose key other processes may have too, and returns the same Turns
	// each time. If it fails or takes longer than Wait, the briefing is given as Turns has
	// decided, with one warning for each process, and UserTurns is not used again for the session. But if
	// the turn of an earlier result was refused, the briefing is not given, and UserTurns is used again later.
	// tenant is the tenant of the session's principal.
	UserTurns func(tenant string) (sessionstate.Turns, error)

	// Response and Instructions select the channels. With neither, the layer uses the responses,
	// and the instructions as well for a client that is known to show them.
	Response, Instructions bool
	// Structured selects what happens to results with structuredContent; "" means toolresult.Auto.
	Structured toolresult.Structured
	// Wait bounds how long a response is held back, once for the source and once for UserTurns;
	// 0 means [DefaultWait].
	Wait time.Duration
	// MaxBytes bounds the block; 0 means no bound.
	MaxBytes int
	// TTL is the idle time that ends a session; 0 means 12 hours.
	TTL time.Duration
	// Log receives messages about the source and the turns; nil discards them.
	Log *slog.Logger
}

// Shared holds the briefings of the sessions of a process, and serves any number of
// connections at once.
type Shared struct {
	o        Options
	sessions sessions
	warnings warnings
	outage   outage
	refusals refusals
}

// Compile prepares the briefings of a process. It does not ask the source.
func Compile(o Options) *Shared {
	if o.Turns == nil {
		o.Turns = sessionstate.NewMemoryTurns(nil)
	}
	o.Structured = cmp.Or(o.Structured, toolresult.Auto)
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.TTL <= 0 {
		o.TTL = sessionstate.DefaultTTL
	}
	s := &Shared{o: o, warnings: warnings{log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}}
	s.sessions.slots = make(chan struct{}, maxLookups)
	if o.Before != nil {
		s.sessions.keepDone(&o.Before.sessions)
		s.o.Before = nil // it is no longer needed
	}
	return s
}

// warnings logs each text once.
type warnings struct {
	log    *slog.Logger
	logged sync.Map // of texts; bounded, because they are those of this package
}

func (w *warnings) once(text string, args ...any) {
	if _, logged := w.logged.LoadOrStore(text, true); !logged {
		w.log.Warn(text, args...)
	}
}

// ConnOptions are the options of one client connection.
type ConnOptions struct {
	// Catalog holds the tools that the server listed on this connection; nil means none.
	Catalog *middleware.Catalog
	// Memory is kept across configuration reloads; nil means an empty one.
	Memory *Memory
	// Results describes the client and its tools; nil means an empty one.
	Results *toolresult.Memory
	// Credential returns a session's own credential, "" if it has none.
	Credential func(session string) string
	// ClientProcess returns a name of the process that started this one and perhaps other
	// servers of the same session, "" if that is unknown. It is called for clients that tell
	// their servers nothing else about the session, and for instructions. nil means "".
	ClientProcess func() string
	// Directory is the working directory of the server. It distinguishes the projects of clients
	// that have several in one process.
	Directory string
	// Server identifies the server within a session, for example by its command. Each process of the
	// server has the same value. A server that gave the briefing in its instructions gives it again
	// when the session is resumed; with "" it does not.
	Server string
	// Log receives warnings about the sessions of the connection; nil discards them.
	Log *slog.Logger
}
