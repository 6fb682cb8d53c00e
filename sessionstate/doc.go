// Package sessionstate holds what is known of a session: facts, each with its source, the
// principal of its credential, and whether its briefing was given.
//
//   - [Fact] is one known value with its [Source]. Sources are ordered by trust;
//     [Better] picks the fact that holds.
//   - [Context] is a snapshot of all facts. It never changes once it is shared:
//     its With methods return a changed copy. A pointer to it travels with every
//     message and costs nothing there.
//   - [Session] holds the current Context of one session key; [Sessions] is the
//     bounded table of them.
//   - [Turns] decides which of many first responses carries the briefing, once a
//     session. [MemoryTurns] is its specification, package statetest its suite, and
//     package turnstore has the one that processes share.
//
// Package identity turns credentials into a [Principal].
//
// The package reads no environment and no message, starts no goroutine, and decides about
// no access. The caller that puts a fact into a Context is responsible for its Source.
package sessionstate
