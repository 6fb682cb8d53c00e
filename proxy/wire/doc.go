// Package wire reads, looks at, edits and writes JSON-RPC frames as raw bytes.
//
// A frame is one line of JSON-RPC on the wire, without its line end. It is never
// decoded into a Go value and encoded again: a frame that nobody edited leaves as
// the bytes it came in, and an edit changes the member that it names. Ids, params
// and results are slices of the line from the first read to the last write.
//
//   - [Reader] cuts a stream into lines, and a line over its limit into chunks.
//   - [Message] is a frame and the results of scanning it. [Scanner.Look] scans each
//     client frame once: it accepts only what all JSON readers in the field read
//     alike (see [Ambiguity]), and records the positions of the members that layers
//     need. [Message.LookEnvelope] finds the top-level members of a server frame;
//     [Envelope] does so for a line that is streamed in chunks.
//   - [Value] walks objects and arrays in place; [Message.Get], [Message.Set],
//     [Message.Delete], [Message.Prepend] and [Message.Apply] read and edit. Keys
//     are separate strings, never a path.
//   - [Writer] gathers frames into fewer writes while the reader has more of
//     them, and delays none.
//
// Two parsers must not read one frame differently. testdata/ambiguous.txt lists what
// the scanner flags for that reason, and which readers differ.
//
// The package knows nothing of sessions, calls or policy, and does not decide what
// happens to a frame that it finds ambiguous.
package wire
