package login

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
)

// SystemRing returns the user's key ring, nil if the system has none.
func SystemRing(p cli.Process) Ring {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" && !hasBus(p.Getenv("DBUS_SESSION_BUS_ADDRESS"), fmt.Sprintf("/run/user/%d", os.Getuid())) {
		return nil
	}
	return systemRing{}
}

// hasBus reports whether there is a D-Bus session bus, which a key ring needs. address is that of the
// environment. Many clients do not pass it on; then the library looks for a bus in dir, and so does hasBus.
// If the library finds no bus, it starts a daemon that keeps running.
func hasBus(address, dir string) bool {
	if address != "" {
		return address != "autolaunch:"
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}

type systemRing struct{}

// The name of the entry in the key ring.
const ringService, ringUser = "attache", "logins"

// Get implements Ring.
func (systemRing) Get() (string, error) {
	text, err := withTimeout(func() (string, error) { return keyring.Get(ringService, ringUser) })
	if errors.Is(err, keyring.ErrNotFound) {
		err = ErrNoKey
	}
	return text, err
}

// Set implements Ring.
func (systemRing) Set(text string) error {
	_, err := withTimeout(func() (string, error) { return "", keyring.Set(ringService, ringUser, text) })
	return err
}

// ringTime is the timeout of the key ring. A locked key ring asks the person on a screen that may be
// elsewhere, and a client must not wait for that.
const ringTime = 10 * time.Second

// withTimeout returns the result of f, or an error if f takes longer than ringTime. f then
// continues: the library has no way to stop it.
func withTimeout(f func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := f()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-time.After(ringTime):
		return "", errors.New("the system's key ring does not answer")
	}
}
