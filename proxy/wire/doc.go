// Package wire reads, looks at, edits and writes JSON-RPC frames as raw bytes.
//
// A frame is one line of JSON-RPC on the wire, without its line end. The
// package never decodes a frame into a Go value and encodes it again: a frame
// nobody edited leaves as the bytes it came in, and an edit touches the member
// it names and nothing else. Ids, params and results are slices of the line
// from the first read to the last write.
//
// The parts, in the order a frame meets them:
//
//   - [Reader] cuts the stream into lines. A line longer than its limit is
//     handed out in chunks, so memory stays bounded whatever a peer sends.
//   - [Message] is a frame and what was read from it. [Scanner.Look] meets every
//     client frame once: it accepts only what all JSON readers in the field read
//     alike (see [Ambiguity]), and records where the members stand that the
//     layers need. [Message.LookEnvelope] finds the top-level members of a server
//     frame and skips their values at memory speed. [Envelope] does the same for
//     a line that streams by in chunks.
//   - [Value] walks objects and arrays in place; [Message.Get], [Message.Set],
//     [Message.Delete], [Message.Prepend] and [Message.Apply] read and edit.
//     Keys are given as separate strings, never as a path: no key of a peer can
//     mean anything but itself.
//   - [Writer] coalesces whole frames into fewer writes while the reader still
//     holds more of them, and never delays one.
//
// Two parsers must not read one frame differently; most of the scanner exists
// for that sentence. What it refuses, and who reads it otherwise, is listed in
// testdata/ambiguous.txt.
//
// What the package does not do: it knows nothing of sessions, calls or policy,
// it holds no lock but the writer's, and it does not decide what happens to a
// frame it finds ambiguous.
package wire
