package wire

import "io"

// Each reads lines to the end of the stream. It calls whole for each line, where last says
// that no other is there, and long for one over the hold limit, of which chunk is the first
// part. Before each it calls await, unless that is nil. handled is false if the error is
// that of whole or long, and not the reader's; the end of the stream is no error.
func (r *Reader) Each(await func(), whole func(line []byte, last bool) error, long func(r *Reader, chunk []byte) error) (handled bool, err error) {
	for {
		if await != nil {
			await()
		}
		line, more, err := r.Next()
		switch {
		case err == io.EOF:
			return true, nil
		case err != nil:
			return true, err
		case more:
			err = long(r, line)
		default:
			err = whole(line, !r.Buffered())
		}
		if err != nil {
			return false, err
		}
	}
}
