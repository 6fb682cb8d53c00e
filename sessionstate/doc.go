// Package sessionstate holds the state of a session: facts, each with its source, the
// principal of its credential, and whether the session has had its briefing.
//
//   - [Fact] is one known value with its [Source]. Sources are ordered by trust, and
//     [Better] chooses between two facts.
//   - [Context] is an immutable snapshot of all facts. Each message carries a pointer to it.
//   - [Session] holds the current Context of one session key; [Sessions] is the
//     bounded table of sessions.
//   - [Turns] decides which of many first responses carries the briefing, once per
//     session. [MemoryTurns] specifies its behaviour, package statetest tests it, and
//     package turnstore implements it for several processes.
//
// Package identity turns credentials into a [Principal].
//
// The package reads no environment and no message, starts no goroutine, and decides no
// access. The caller that puts a fact into a Context is responsible for its Source.
package sessionstate
