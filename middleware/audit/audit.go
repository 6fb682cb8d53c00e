// Package audit is the layer that records every call and what was decided about it:
// who called what, which rules acted, what was edited, and the result.
//
// The layer stands outside all others but trace, so it sees each call as the client
// sent it and each reply as the client gets it. The layers inside tell it what they
// did by their notes ([middleware.Call.Listen]). Who the call is from it reads from
// the context that the layer capture attached, at the time of the reply.
//
// It records the calls that do or read something on the server: tools/call,
// prompts/get and resources/read, also a tools/call sent as a notification. It does
// not record lists, pings and other notifications.
//
// # What a record holds
//
//	{"time":"2026-11-21T14:00:00.000Z","kind":"call","run":"9f2c…","call":3,
//	 "session":"s1","user":"ada","tenant":"acme",…,"server":"git","method":"tools/call",
//	 "tool":"git_log","decision":"allowed","rules":[…],"edits":[…],
//	 "arguments_digest":"hmac-sha256:…","result":"ok","request_bytes":98,
//	 "reply_bytes":211,"ms":1.204}
//
// docs/audit.md says what each member means. Values of arguments and edits are
// recorded as digests under a key that is kept beside the file: equal values have
// equal digests, and without the key nobody can find a value by trying. With
// Options.Arguments they are recorded in clear, without secrets.
//
// # When it cannot
//
// A record that cannot be written is counted, and calls go on. With
// Options.Required the layer enforces: [Conn.Gate], a second layer inside those
// that decide and edit, records what is about to be sent and lets it go on only
// when the record is in the file; otherwise it refuses the call.
package audit

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// Arguments says how a call's arguments are recorded.
type Arguments string

// The ways to record arguments.
const (
	Digest   Arguments = "digest"   // a keyed digest; the default
	Redacted Arguments = "redacted" // without what is a secret by its name or looks
	Full     Arguments = "full"     // without the secrets that are known
)

// DefaultWait is how long a call waits for its record where one is required.
const DefaultWait = 2 * time.Second

// Options configure the audit of a process.
type Options struct {
	// Log keeps the records. Shared.Close closes it.
	Log *chain.Log
	// Server is the server's name.
	Server string
	// Arguments says how arguments are recorded; "" means Digest.
	Arguments Arguments
	// Required has Gate refuse calls that cannot be recorded.
	Required bool
	// Wait is how long a call waits for its record if Required; 0 means DefaultWait.
	Wait time.Duration
}

// Shared is the audit of a process. Its records carry one run, so that the records
// of several processes in one file can be told apart.
type Shared struct {
	o       Options
	run     string
	digests digests
	kept    atomic.Int64  // bytes of arguments in clear, of the calls in flight
	calls   atomic.Uint64 // recorded so far
	entries sync.Pool     // *entry, of no call
}

// Compile returns the audit of a process.
func Compile(o Options) (*Shared, error) {
	if o.Log == nil {
		return nil, errors.New("an audit needs a log: set Options.Log")
	}
	o.Arguments, o.Wait = cmp.Or(o.Arguments, Digest), cmp.Or(o.Wait, DefaultWait)
	var run [8]byte
	_, _ = rand.Read(run[:]) // never fails: crypto/rand, Go 1.24
	return &Shared{o: o, run: hex.EncodeToString(run[:]), digests: digests{key: o.Log.Key}}, nil
}

// Required reports whether calls that cannot be recorded are refused.
func (s *Shared) Required() bool { return s.o.Required }

// Close returns when all records are written or the grace is over. The error says
// how many records are not in the file. Close each Conn before.
func (s *Shared) Close(grace time.Duration) error { return s.o.Log.Close(grace) }

// maxKept bounds the arguments that are kept in clear for all calls in flight, in
// bytes. Calls beyond it are recorded with a digest.
const maxKept = 16 << 20

// keep reserves n bytes for arguments, if they are within maxKept.
func (s *Shared) keep(n int) bool {
	if s.kept.Add(int64(n)) <= maxKept {
		return true
	}
	s.kept.Add(int64(-n))
	return false
}
