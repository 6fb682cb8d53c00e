// Package chain keeps a log in a file in which every line has the digest of the line
// before. So a line that is changed, dropped, added or moved later is found.
//
// A line is one JSON object and a newline. It begins with two members that this
// package writes, followed by those of the record:
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
// A file that has reached its size is renamed: audit.jsonl becomes
// audit-000000005000.jsonl, after the number of its last record. The first line of
// the next file has the next number and the digest of the last line of the file before.
// FILE.key beside the file is its lock and has a secret for digests of values (see
// [Log.Key]).
//
// Several processes may write one file. Each takes the lock for a moment, checks
// whether the file has grown, was renamed or is gone, and appends. No process ever
// overwrites anything.
//
// # Records of the chain's own
//
//	begin      the first line of a file
//	repaired   a process died while it wrote a line: the part that it wrote stays, and
//	           this record has its length and digest
//	gap        records were lost because they could not be written
//	shortened  the file was shorter than this process had seen it before
//
// # What a chain cannot show
//
// Whoever can write the file can cut off its end, or compute the whole chain again, and
// the chain alone does not show it. So keep a digest somewhere else from time to time,
// and give it to [Verifier.Expect].
package chain
