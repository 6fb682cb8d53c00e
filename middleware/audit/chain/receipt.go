package chain

import "errors"

// ErrLost is returned for a record that is not in the file and will not be written.
var ErrLost = errors.New("the record could not be written")

// An item is a waiting record.
type item struct {
	body    []byte
	receipt *Receipt // nil for Append
	lost    int      // the number of lost records that a gap record reports; 0 for other records
}

// A Receipt reports whether one record was written.
type Receipt struct {
	done chan struct{}
	err  error
}

// Done returns a channel that is closed when the record was written or is lost.
func (r *Receipt) Done() <-chan struct{} { return r.done }

// Err waits until the record was written or is lost. It returns nil if the record is in the file,
// otherwise an error that wraps ErrLost and contains the reason.
func (r *Receipt) Err() error {
	<-r.done
	return r.err
}

func (r *Receipt) settle(err error) {
	if r != nil {
		r.err = err
		close(r.done)
	}
}
