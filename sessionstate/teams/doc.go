// Package teams stores the sessions of agents and the messages between them, in a SQLite file
// that all processes of a user share, or in PostgreSQL. It does not depend on JSON-RPC.
//
// [Store.Attach] authenticates the caller and registers its session, which is alive while one
// of its processes renews its lease. [Store.Create] creates a child session, [Store.Send] puts
// a message into a session's mailbox, and [Store.Take] and [Store.Settle] remove messages from
// it. A session that attache started also has runs: [Store.EndRun] ends a run, releases its
// share of the limits, and reports to the parent, exactly once.
//
// Limits are counters in rows, changed by conditional updates. So they are exact however many
// processes compete, and no reader sees them exceeded. Every method is one transaction, so a
// process that is killed leaves no partial change.
//
// A message is delivered at least once. A process that takes messages holds the session's inbox
// for [InboxLease], so messages stay in order, and settles them afterwards. If it dies before
// that, the messages are taken again and marked ([Message.Again]).
package teams
