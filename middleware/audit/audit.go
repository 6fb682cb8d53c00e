// Package audit is the layer that records every call and what was decided about it:
// who called what, which rules acted, what was edited, and the result.
//
// The layer runs outside all others except trace, so it sees each call as the client
// sent it and each reply as the client receives it. It learns from the notes of the inner
// layers what they did ([middleware.Call.Listen]), and from the context that capture
// attached, at the time of the reply, who made the call.
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
// docs/audit.md explains each member. Values of arguments and edits are recorded as
// digests with a key that is kept beside the file: equal JSON texts have equal digests, and
// without the key nobody can guess a value. With Options.Arguments, arguments are recorded
// in clear, without secrets.
//
// # Failures
//
// A record that cannot be written is counted, and calls go on. With Options.Required
// the layer enforces: [Conn.Gate], a second layer inside those that decide and edit,
// records a call before it is sent, and refuses it if the record cannot be written.
package audit

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attache-mcp/attache/middleware/audit/chain"
)

// Arguments selects how a call's arguments are recorded.
type Arguments string

// The ways to record arguments.
const (
	Digest   Arguments = "digest"   // a keyed digest; the default
	Redacted Arguments = "redacted" // without values that look like secrets, or are named so
	Full     Arguments = "full"     // without the known secrets
)

// commitWait is how long a call waits for its record if Options.Required is set.
const commitWait = 2 * time.Second

// Options configure the audit of a process.
type Options struct {
	// Log keeps the records; it must not be nil. Shared.Close closes it.
	Log *chain.Log
	// Server is the server's name.
	Server string
	// Arguments selects how arguments are recorded; "" means Digest.
	Arguments Arguments
	// Required makes Gate refuse calls that cannot be recorded.
	Required bool
}

// Shared is the audit of a process. Its records have a random run, which distinguishes
// the records of several processes in one file.
type Shared struct {
	o        Options
	run      string
	digests  digests
	reserved atomic.Int64  // bytes of arguments in clear, for the calls in flight
	calls    atomic.Uint64 // the number of calls so far
	entries  sync.Pool     // of unused *entry
}

// Compile returns the audit of a process.
func Compile(o Options) *Shared {
	o.Arguments = cmp.Or(o.Arguments, Digest)
	var run [8]byte
	rand.Read(run[:]) // never returns an error
	return &Shared{o: o, run: hex.EncodeToString(run[:]), digests: digests{key: o.Log.Key}}
}

// Required reports whether calls that cannot be recorded are refused.
func (s *Shared) Required() bool { return s.o.Required }

// Close waits until all records are written, for at most grace. The error contains the
// number of records that are not in the file. Close each Conn first.
func (s *Shared) Close(grace time.Duration) error { return s.o.Log.Close(grace) }

// maxReserved bounds the arguments in clear of all calls in flight, in bytes. Further
// calls are recorded with a digest.
const maxReserved = 16 << 20

// reserve reserves n bytes for arguments, within maxReserved.
func (s *Shared) reserve(n int) bool {
	if s.reserved.Add(int64(n)) <= maxReserved {
		return true
	}
	s.reserved.Add(int64(-n))
	return false
}
