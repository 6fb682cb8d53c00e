package session

import (
	"os"
	"os/signal"
	"slices"
)

// Signals are the signals that a process of attache handles.
type Signals struct {
	Ending  chan os.Signal // those that end attache
	Reload  chan os.Signal // those that have the configuration read again
	Restart chan os.Signal // those that have servers restarted; none where there is no such signal
}

// HeedSignals starts to handle signals. Before that, they end attache as they end any program.
func HeedSignals() Signals {
	s := Signals{make(chan os.Signal, 4), make(chan os.Signal, 1), make(chan os.Signal, 1)}
	signal.Notify(s.Ending, endingSignals...)
	// A signal that our parent ignores, as nohup does, stays ignored here and in the server,
	// which inherits it: to listen would undo that for both.
	if heeded := slices.DeleteFunc(slices.Clone(reloadSignals), signal.Ignored); len(heeded) > 0 {
		signal.Notify(s.Reload, heeded...)
	}
	if CanRestart() {
		signal.Notify(s.Restart, restartSignals...)
	}
	return s
}

// Stop ends the handling: the signals do what they do without attache.
func (s Signals) Stop() {
	signal.Stop(s.Ending)
	signal.Stop(s.Reload)
	signal.Stop(s.Restart)
}

// CanRestart reports whether there is a signal that restarts servers.
func CanRestart() bool { return len(restartSignals) > 0 }
