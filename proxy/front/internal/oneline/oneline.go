// Package oneline makes lines of JSON texts.
package oneline

import "bytes"

// Of returns a JSON text as one line with a line end, made in place: white space at
// its end is left out, and line ends within it, which JSON has between its tokens alone,
// become spaces.
func Of(b []byte) []byte {
	b = bytes.TrimRight(b, " \t\r\n")
	for _, end := range []byte{'\n', '\r'} {
		for i := bytes.IndexByte(b, end); i >= 0; {
			b[i] = ' '
			next := bytes.IndexByte(b[i:], end)
			if next < 0 {
				break
			}
			i += next
		}
	}
	return append(b, '\n')
}
