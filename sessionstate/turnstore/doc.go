// Package turnstore stores turns in a database that many processes share, so that the servers
// of one client, each behind its own attache, brief the model only once.
//
// [Turns] implements [sessionstate.Turns] in a SQLite file or in PostgreSQL. Each change is one
// transaction, so a process that is killed leaves no partial change and no lock. The turn of a
// process that died is free again after [sessionstate.Lease].
//
// The database stores the SHA-256 of each key, not the key: it is the id of a session, which
// may be a secret elsewhere.
//
// The lease and the idle time use the wall clock that the processes share: that of the
// machine, or of the server. If it is set back, a turn stays held for at most two leases.
//
// The package repairs nothing. If a file is damaged, of a newer version or locked for too long,
// it returns an error, and the caller continues with [sessionstate.MemoryTurns].
package turnstore
