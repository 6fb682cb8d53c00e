package revive

// Restart ends the server of a link. The server is then started again at once, however
// often it has ended (R18). Restart returns false if the server would not be started again.
func (v *Supervisor) Restart(l *Link) bool {
	if !v.MayRevive() {
		return false
	}
	// This comes before the end of the server, which would count as a crash otherwise.
	select {
	case v.byHand <- struct{}{}:
	default: // a restart is already under way
	}
	if l.server.Load() != nil { // otherwise it is about to be started
		go l.stop()
	}
	return true
}

// restartOrdered reports whether Restart was called since the last time, and then resets the
// pace.
func (v *Supervisor) restartOrdered() bool {
	select {
	case <-v.byHand:
		v.pace = pace{}
		return true
	default:
		return false
	}
}
