package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"sync"
)

// digests makes keyed digests of values.
type digests struct {
	key func() []byte // returns the log's key

	mu  sync.Mutex
	mac hash.Hash         // nil before the first digest
	sum [sha256.Size]byte // a buffer
}

// append appends a member with the digest of a value, unless the value is nil.
func (d *digests) append(r record, name string, raw []byte) record {
	if raw == nil {
		return r
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mac == nil {
		d.mac = hmac.New(sha256.New, d.key())
	}
	d.mac.Reset()
	d.mac.Write(raw)
	r = append(r.name(name), `"hmac-sha256:`...)
	return append(hex.AppendEncode(r, d.mac.Sum(d.sum[:0])), '"')
}
