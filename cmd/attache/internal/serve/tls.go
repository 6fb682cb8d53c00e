package serve

import (
	"crypto/tls"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkTime is the shortest time between two checks of the files of a certificate. Each TLS handshake
// asks for the certificate.
const checkTime = time.Second

// A certificate holds a TLS certificate, and reads it again when one of its files changes.
type certificate struct {
	cert, key string
	log       *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	read    [2]time.Time // the modification times of the files that were read
	seen    [2]time.Time // the modification times at the last attempt
	checked time.Time
}

func newCertificate(cert, key string, log *slog.Logger) *certificate {
	c := &certificate{cert: cert, key: key, log: log}
	if _, err := c.get(nil); err != nil { // no failure: another program may be about to write the files
		log.Error("the certificate cannot be used: no client can connect until it can; see serve.tls", "err", err)
	}
	return c
}

// get returns the certificate in the files. If the files cannot be used, it returns the last certificate, because
// they may be half written. It is the GetCertificate of a tls.Config.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && time.Since(c.checked) < checkTime {
		return c.current, nil
	}
	c.checked = time.Now()
	changed := [2]time.Time{modified(c.cert), modified(c.key)}
	// One file may be replaced before the other. While the two do not match, they are read again at each
	// check.
	if c.current != nil && changed == c.read {
		return c.current, nil
	}
	next, err := tls.LoadX509KeyPair(c.cert, c.key)
	switch {
	case err == nil:
		c.current, c.read, c.seen = &next, changed, changed
		if expires := next.Leaf.NotAfter; time.Now().Before(expires) {
			c.log.Info("the certificate was read", "file", c.cert, "expires", expires)
		} else {
			c.log.Warn("the certificate has expired, so clients refuse to connect: renew it; see serve.tls", "file", c.cert, "expired", expires)
		}
	case c.current == nil:
		return nil, err
	case changed != c.seen: // one warning for each change
		c.seen = changed
		c.log.Warn("the new certificate cannot be used; the old one stays in force", "err", err)
	}
	return c.current, nil
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
