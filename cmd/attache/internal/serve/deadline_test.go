package serve

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A oneListener accepts one end of a pipe.
type oneListener struct {
	net.Listener
	end net.Conn
}

func (l oneListener) Accept() (net.Conn, error) { return l.end, nil }

// The last deadline is exact, even though moving a deadline does not reset its timer.
func TestDeadlines(t *testing.T) {
	const never = 0
	for _, c := range []struct {
		name string
		move []time.Duration // from now; never clears the deadline
		want time.Duration   // when a read fails; never if it does not
	}{
		{"single", []time.Duration{time.Second}, time.Second},
		{"later", []time.Duration{time.Second, time.Minute}, time.Minute},
		{"earlier", []time.Duration{time.Minute, time.Second}, time.Second},
		{"cleared", []time.Duration{time.Second, never}, never},
		{"cleared and set again", []time.Duration{time.Second, never, time.Minute}, time.Minute},
		{"later, then earlier", []time.Duration{time.Minute, time.Hour, time.Second}, time.Second},
		{"in the past", []time.Duration{-100 * 365 * 24 * time.Hour}, time.Nanosecond},
		{"in the past, then cleared", []time.Duration{-100 * 365 * 24 * time.Hour, never}, never},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				conn, err := (&listener{Listener: oneListener{end: ours}}).Accept()
				check(t, err)
				defer conn.Close()
				for _, after := range c.move {
					at := time.Time{}
					if after != never {
						at = time.Now().Add(after)
					}
					check(t, conn.SetReadDeadline(at))
				}
				began := time.Now()
				if c.want == never {
					time.AfterFunc(24*time.Hour, func() { theirs.Close() })
				}
				_, err = conn.Read(make([]byte, 1))
				took := time.Since(began)
				if late := errors.Is(err, os.ErrDeadlineExceeded); late != (c.want != never) {
					t.Errorf("after %v: %v", took, err)
				}
				if c.want != never && took.Round(time.Microsecond) != c.want.Round(time.Microsecond) {
					t.Errorf("the read failed after %v", took)
				}
			})
		})
	}
}

// A connection can be used again after a deadline has passed.
func TestDeadlineAfterDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		conn, _ := (&listener{Listener: oneListener{end: ours}}).Accept()
		defer conn.Close()
		defer theirs.Close()
		for range 3 {
			began := time.Now()
			_ = conn.SetDeadline(began.Add(time.Second))
			if _, err := conn.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Second {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			_ = conn.SetDeadline(time.Time{})
			go theirs.Read(make([]byte, 1))
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
	})
}
