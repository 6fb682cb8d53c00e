// Package teams keeps the sessions of a user's agents and the messages between them, in
// a SQLite file that all of the user's processes share. It knows no JSON-RPC.
//
// A session is registered by [Store.Attach], which proves who the caller is, and is alive
// while one of its processes renews its lease. [Store.Create] makes a child session,
// [Store.Send] puts a message into a session's mailbox, and [Store.Take] and [Store.Settle]
// get messages out of it. A session that attache started also has runs: [Store.EndRun]
// ends one, gives back what it took of the limits, and reports to the parent, exactly once.
//
// Limits are counters on rows that conditional updates change, so they hold exactly however
// many processes compete, and no reader can see them exceeded. Every method is one
// transaction: a process that is killed leaves all of a change or nothing.
//
// A message is delivered at least once. Whoever takes messages holds the session's inbox for
// [InboxLease], so they come in order, and says afterwards what became of them. If it dies in
// between, the messages are taken again and say so ([Message.Again]).
package teams
