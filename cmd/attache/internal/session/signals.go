package session

import (
	"os"
	"os/signal"
	"slices"
)

// Signals receive the signals that attache handles.
type Signals struct {
	Ending  chan os.Signal // end attache
	Reload  chan os.Signal // read the configuration again
	Restart chan os.Signal // restart the servers; receives none if the system has no such signal
}

// NotifySignals starts to handle signals. Before that, a signal ends attache like any other program.
func NotifySignals() Signals {
	s := Signals{make(chan os.Signal, 4), make(chan os.Signal, 1), make(chan os.Signal, 1)}
	signal.Notify(s.Ending, endingSignals...)
	// A signal that the parent ignores, as nohup does, must stay ignored here and in the server,
	// which inherits that. Notify would end it for both.
	if signals := slices.DeleteFunc(slices.Clone(reloadSignals), signal.Ignored); len(signals) > 0 {
		signal.Notify(s.Reload, signals...)
	}
	if CanRestart() {
		signal.Notify(s.Restart, restartSignals...)
	}
	return s
}

// Stop stops the handling of signals. They then have their default effect again.
func (s Signals) Stop() {
	signal.Stop(s.Ending)
	signal.Stop(s.Reload)
	signal.Stop(s.Restart)
}

// CanRestart reports whether the system has a signal that restarts servers.
func CanRestart() bool { return len(restartSignals) > 0 }
