package proxy

import "time"

// stallTime is how long a session continues without progress after the client has hung up. An
// upstream has the same time after the end of its input.
const stallTime = 1500 * time.Millisecond

// watchClient ends the session of a client that has hung up while its direction waits for an
// upstream that does not read. As long as the upstream reads, the client's messages are still
// delivered.
func (s *session) watchClient() {
	select {
	case <-s.o.ClientGone:
	case <-s.ending:
		return
	}
	t := time.NewTicker(stallTime)
	defer t.Stop()
	for moved := s.moved(); ; moved = s.moved() {
		select {
		case <-s.going.Done():
			return
		case <-s.ending:
			return
		case <-t.C:
		}
		if s.moved() == moved {
			s.fail(ErrClientGone)
			return
		}
	}
}

// moved returns how many lines and chunks were written to the upstream.
func (s *session) moved() int64 {
	if l := s.link.Load(); l != nil {
		return l.Moved()
	}
	return 0
}
