package machine

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// FreeAddress returns an address on which nobody listens. The system does not give its port to
// connections, so no connection takes it while the program restarts.
func FreeAddress() string {
	for {
		address := "127.0.0.1:" + strconv.Itoa(20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
}

// AwaitListener waits until a program listens on the address. It returns the error of ctx
// if ctx ends first.
func AwaitListener(ctx context.Context, address string) error {
	for ctx.Err() == nil {
		if c, err := net.Dial("tcp", address); err == nil {
			return c.Close()
		}
		Pause(ctx, 5*time.Millisecond)
	}
	return ctx.Err()
}

// Pause waits for d. It returns false if ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
