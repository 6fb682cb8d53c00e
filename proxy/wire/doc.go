// Package wire reads, looks at, edits and writes JSON-RPC frames as raw bytes.
//
// A frame is one line of JSON-RPC on the wire, without its line end. It is never
// decoded into a Go value and encoded again: a frame that nobody edited leaves as
// the bytes it came in, and an edit changes the member that it names. Ids, params
// and results are slices of the line from the first read to the last write.
//
//   - [Reader] cuts the stream into lines, and a line over its limit into chunks.
//   - [Message] is a frame and what was read from it. [Scanner.Look] looks at each
//     client frame once: it accepts only what all JSON readers in the field read
//     alike (see [Ambiguity]), and records where the members are that the layers
//     need. [Message.LookEnvelope] finds the top-level members of a server frame;
//     [Envelope] does so for a line that streams by in chunks.
//   - [Value] walks objects and arrays in place; [Message.Get], [Message.Set],
//     [Message.Delete], [Message.Prepend] and [Message.Apply] read and edit. Keys
//     are separate strings, never a path.
//   - [Writer] gathers frames into fewer writes while the reader holds more of
//     them, and delays none.
//
// Two parsers must not read one frame differently. What the scanner refuses for
// that reason, and who reads it otherwise, is in testdata/ambiguous.txt.
//
// The package knows nothing of sessions, calls or policy, and does not decide what
// happens to a frame that it finds ambiguous.
package wire
