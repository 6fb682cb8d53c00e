// Package event encodes messages as server-sent events, each with one line of data if possible.
package event

import (
	"bytes"
	"iter"
)

// Start and End enclose the lines of data of an event.
const Start, End = "event: message\ndata: ", "\n\n"

// nextLine separates two lines of data.
const nextLine = "\ndata: "

// Lines yields the lines of data of an event, each with the text that follows it. A bare carriage
// return, which JSON may have between tokens, would end a line of data. Lines begins a new line of
// data there; readers join them.
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

// Append appends the event of a message to b. For a message that need not be in memory as one piece, use Lines between
// Start and End.
func Append(b, frame []byte) []byte {
	b = append(b, Start...)
	for line, end := range Lines(frame) {
		b = append(append(b, line...), end...)
	}
	return append(b, End...)
}

// Size returns the size in bytes of the event of a message, as Append makes it, so that the memory can be counted
// before it is allocated.
func Size(frame []byte) int {
	crs := bytes.Count(frame, []byte{'\r'})
	return len(Start) + len(frame) + crs*(len(nextLine)-len("\r")) + len(End)
}
