package machine

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// FreeAddress returns an address on which nobody listens. Its port is not one that the system
// gives to connections: one of these might take it while the program is down.
func FreeAddress() string {
	for {
		address := "127.0.0.1:" + strconv.Itoa(20_000+rand.IntN(12_000))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
}
