// Package chain keeps a log in a file in which every line carries the digest of
// the line before, so that a line that is changed, dropped, added or moved
// afterwards shows.
//
// A line is one JSON object and a newline. It begins with two members that this
// package writes, and goes on with those of the record it was given:
//
//	{"seq":7,"prev":"sha256:9f86…","kind":"call",…}
//
// seq counts the lines of the whole chain from 1. prev is the SHA-256 of the line
// before, all its bytes from the brace to the newline, so that
//
//	sed -n 6p audit.jsonl | sha256sum
//
// prints what line 7 carries. The first line of a chain carries 64 zeros.
//
// # Files
//
// A file that has reached its size is renamed: audit.jsonl becomes
// audit-000000005000.jsonl, after the number of its last record. The first line of
// the next file goes on counting and carries the digest of the last line of the
// file before. Beside the file stands FILE.key, which is its lock and holds a
// secret for digests of values (see [Log.Key]).
//
// Several processes may write one file. Each takes the lock for a moment, looks
// whether the file has grown, was renamed or is gone, and appends; nobody ever
// writes over what is there.
//
// # Records of the chain's own
//
//	begin      the first line of a file
//	repaired   a process died within a line: what it had written of it stays where
//	           it is, and this record says how many bytes that are, and their digest
//	gap        records were lost because they could not be written
//	shortened  the file had become shorter than this process had seen it
//
// # What a chain cannot show
//
// Whoever may write the file can cut off its end, or compute all of it anew: the
// chain alone then looks whole. So keep a digest somewhere else from time to time,
// and give it to [Verifier.Expect].
package chain
