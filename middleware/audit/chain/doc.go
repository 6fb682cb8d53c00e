// Package chain writes a log file in which every line has the digest of the line before.
// So a line that was changed, dropped, added or moved later is found.
//
// A line is one JSON object and a newline. It begins with two members that this
// package adds, followed by those of the record:
//
//	{"seq":7,"prev":"sha256:9f86…","kind":"call",…}
//
// seq counts the lines of the whole chain from 1. prev is the SHA-256 of the line
// before, from the brace to the newline inclusive, so that
//
//	sed -n 6p audit.jsonl | sha256sum
//
// prints the digest in line 7. The first line of a chain has 64 zeros.
//
// # Files
//
// A file that has reached its maximum size is renamed: audit.jsonl becomes
// audit-000000005000.jsonl, after the number of its last record. The first line of
// the next file has the next number and the digest of the last line of the file before.
// FILE.key beside the file is its lock and holds a secret for digests of values (see
// [Log.Key]).
//
// Several processes may write one file. Each takes the lock for a moment, checks
// whether the file has grown or was renamed or removed, and appends. No process ever
// overwrites anything.
//
// # Records that this package writes
//
//	begin      the first line of a file
//	repaired   a process died while it wrote a line: the written part is kept, and this
//	           record has its length and digest
//	gap        records were lost because they could not be written
//	shortened  the file is shorter than when this process last read or wrote it
//
// # Limits
//
// Somebody who can write the file can cut off its end, change its last line, or compute
// the whole chain again, and the chain alone does not show that. So keep a digest elsewhere
// from time to time, and set [Verifier.Expect] to it.
package chain
