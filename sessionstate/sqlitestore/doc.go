// Package sqlitestore keeps turns in a file that many processes share: the servers
// of one client, each behind an attache of its own, brief the model once among them.
//
// [Turns] is a [sessionstate.Turns] on SQLite. The file is in WAL mode, so those who
// read do not wait for the one who writes, and every method is one statement, so a
// process that is killed leaves either all of it or nothing, and no lock. A turn that
// was taken by a process that died is free again after [sessionstate.Lease].
//
// Keys are kept as their SHA-256 alone: they are ids of sessions, which somebody else
// may take for a secret.
//
// The lease and the idle time go by the wall clock, the one clock that processes
// share. If it is set back, a turn is held for two leases at most.
//
// What the package does not do: it repairs nothing. A file that is damaged, of a newer
// version or locked for too long is an error, and the caller goes on with a memory of
// its own.
package sqlitestore
