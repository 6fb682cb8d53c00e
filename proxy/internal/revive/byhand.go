package revive

// Restart ends the server of a link, which then is started again at once and without
// regard to how often it has ended (R18). It reports false if it would not be.
func (v *Supervisor) Restart(l *Link) bool {
	if !v.MayRevive() {
		return false
	}
	select {
	case v.byHand <- struct{}{}:
	default: // it is being done
	}
	if l.server.Load() != nil { // it may wait to be started
		go l.stop()
	}
	return true
}

// takeOrder takes the order to start the server again, and reports whether there was one.
func (v *Supervisor) takeOrder() bool {
	select {
	case <-v.byHand:
		v.pace = Pace{}
		return true
	default:
		return false
	}
}
