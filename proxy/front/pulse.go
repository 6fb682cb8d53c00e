package front

import (
	"sync"
	"time"
)

// A pulse reminds the streams of a front that have been silent. A timer for each request
// would cost more than the rest of the wait: most are answered long before it is due.
type pulse struct {
	mu      sync.Mutex
	streams map[*stream]struct{}
	beating bool
}

// beatTime is the time between two looks at the streams, and so how late a reminder is.
const beatTime = time.Second

// add has a stream reminded, for the first time after quickTime.
func (p *pulse) add(t *stream) {
	t.mu.Lock()
	t.due = time.Now().Add(quickTime)
	t.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams == nil {
		p.streams = map[*stream]struct{}{}
	}
	p.streams[t] = struct{}{}
	if !p.beating {
		p.beating = true
		time.AfterFunc(beatTime, p.beat)
	}
}

func (p *pulse) remove(t *stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, t)
}

// beat looks at all streams, and does so again as long as there are any.
func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for t := range p.streams {
		t.remind(now)
	}
	if p.beating = len(p.streams) > 0; p.beating {
		time.AfterFunc(beatTime, p.beat)
	}
}
