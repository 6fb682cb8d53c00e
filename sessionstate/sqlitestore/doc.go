// Package sqlitestore keeps turns in a file that many processes share: the servers
// of one client, each behind an attache of its own, brief the model once among them.
//
// [Turns] implements [sessionstate.Turns] with SQLite. The file is in WAL mode, so readers
// do not wait for a writer. A change is one statement, so a process that is killed leaves
// either all of it or nothing, and no lock. A turn of a process that died is free again
// after [sessionstate.Lease].
//
// The file has the SHA-256 of each key, not the key: it is the id of a session, which may
// be a secret elsewhere.
//
// The lease and the idle time use the wall clock, the only clock that processes share. If
// it is set back, a turn is held for two leases at most.
//
// The package repairs nothing. A file that is damaged, of a newer version or locked for too
// long is an error, and the caller continues with [sessionstate.MemoryTurns].
package sqlitestore
