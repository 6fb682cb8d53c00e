package ownconn

import (
	"sync"
	"time"
)

// An idlePool keeps connections that no request uses. No goroutine reads from them, so each is
// checked before it is used again: the server may have closed it.
type idlePool struct {
	limit int           // how many connections to a host are kept
	time  time.Duration // how long a connection is kept; take checks it too, because expire may be late

	mu      sync.Mutex
	hosts   map[string][]*conn // the last used connection is the last element
	running bool               // the timer of expire is running
}

// take removes a usable connection to a host from the pool and returns it, or nil if there is none. The
// last used one comes first, so that the others reach their time and are closed.
func (p *idlePool) take(host string) *conn {
	for {
		c := p.pop(host)
		// One read that does not block. Data without a request is as bad as an end: it would be read as the answer.
		if c == nil || c.raw.Read(c.look) == nil && c.open && time.Since(c.idleSince) < p.time {
			return c
		}
		_ = c.Close()
	}
}

func (p *idlePool) pop(host string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.hosts[host]
	n := len(all) - 1
	if n < 0 {
		return nil
	}
	c := all[n]
	all[n] = nil
	p.hosts[host] = all[:n]
	return c
}

// put adds a connection, or closes it if the pool is full for its host.
func (p *idlePool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.raw == nil || len(p.hosts[c.host]) >= p.limit {
		_ = c.Close()
		return
	}
	c.idleSince = time.Now()
	if p.hosts == nil {
		p.hosts = map[string][]*conn{}
	}
	p.hosts[c.host] = append(p.hosts[c.host], c)
	if !p.running {
		p.running = true
		time.AfterFunc(p.time, p.expire)
	}
}

// expire closes the connections that have been idle too long, and starts the next timer if there
// are others.
func (p *idlePool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, next := time.Now(), p.time
	// The connections of a host are in the order of idleSince, so those to close come first.
	for host, all := range p.hosts {
		n := 0
		for n < len(all) && now.Sub(all[n].idleSince) >= p.time {
			_ = all[n].Close()
			n++
		}
		if n == len(all) {
			delete(p.hosts, host)
			continue
		}
		// A copy, so that the closed ones do not stay in memory.
		p.hosts[host] = append(all[:0:0], all[n:]...)
		next = min(next, p.time-now.Sub(all[n].idleSince))
	}
	if p.running = len(p.hosts) > 0; p.running {
		time.AfterFunc(next, p.expire)
	}
}

// closeAll closes all connections.
func (p *idlePool) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, all := range p.hosts {
		for _, c := range all {
			_ = c.Close()
		}
	}
	p.hosts = nil
}
