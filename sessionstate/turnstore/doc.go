// Package turnstore keeps turns in a database that many processes share: the servers of one
// client, each behind an attache of its own, brief the model once among them.
//
// [Turns] implements [sessionstate.Turns] in a SQLite file or in PostgreSQL. A change is one
// statement, so a process that is killed leaves either all of it or nothing, and no lock. A
// turn of a process that died is free again after [sessionstate.Lease].
//
// The database has the SHA-256 of each key, not the key: it is the id of a session, which may
// be a secret elsewhere.
//
// The lease and the idle time use the wall clock that the processes share: that of the
// machine, or of the server. If it is set back, a turn is held for two leases at most.
//
// The package repairs nothing. A file that is damaged, of a newer version or locked for too
// long is an error, and the caller continues with [sessionstate.MemoryTurns].
package turnstore
