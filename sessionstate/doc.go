// Package sessionstate is what is known of a session: the facts, where each came
// from, who the credential turned out to be, and whose turn it is to carry the
// briefing.
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
//     package sqlitestore has the one that processes share.
//
// Package identity turns credentials into a [Principal].
//
// What the package does not do: it reads nothing (no environment, no message),
// starts no goroutine, and takes no decision about access. Whoever puts a fact
// into a Context answers for its Source.
package sessionstate
