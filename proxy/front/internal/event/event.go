// Package event writes messages as events of a stream (server-sent events), each with one line of
// data where that is possible.
package event

import (
	"bytes"
	"iter"
)

// Start and End stand around the lines of data of an event.
const Start, End = "event: message\ndata: ", "\n\n"

// nextLine stands between two lines of data.
const nextLine = "\ndata: "

// Lines yields the lines of the data of an event, and what follows each. A bare carriage return,
// which JSON may have between its tokens, would end the line there: what follows it becomes a line
// of data of its own, as readers join these.
func Lines(data []byte) iter.Seq2[[]byte, string] {
	return func(yield func([]byte, string) bool) {
		for {
			at := bytes.IndexByte(data, '\r')
			if at < 0 {
				yield(data, "")
				return
			}
			if !yield(data[:at], nextLine) {
				return
			}
			data = data[at+1:]
		}
	}
}

// Append appends the event of a message to b.
func Append(b, frame []byte) []byte {
	b = append(b, Start...)
	for line, end := range Lines(frame) {
		b = append(append(b, line...), end...)
	}
	return append(b, End...)
}

// Size returns how many bytes the event of a message has.
func Size(frame []byte) int {
	crs := bytes.Count(frame, []byte{'\r'})
	return len(Start) + len(frame) + crs*(len(nextLine)-len("\r")) + len(End)
}
