package access

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// A Memory is what a layer has learnt of tools, and counted of calls. It outlives
// the layer where the configuration is read again: otherwise every change of a
// file would give everybody a full bucket. The zero value is ready.
type Memory struct {
	mu          sync.Mutex
	annotations map[string][]byte // by tool
	rates       []*buckets
}

const (
	// maxLearnt is of how many tools the annotations are kept.
	maxLearnt = 10_000
	// maxAnnotations is how long annotations may be; longer ones are none.
	maxAnnotations = 4 << 10
)

func (a *Access) learnt(tool string) []byte {
	if !a.learns {
		return nil
	}
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	return a.memory.annotations[tool]
}

func (m *Memory) learn(tool string, annotations []byte) {
	if len(annotations) > maxAnnotations {
		annotations = nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.annotations[tool]; !known && len(m.annotations) >= maxLearnt {
		clear(m.annotations)
	}
	if m.annotations == nil {
		m.annotations = map[string][]byte{}
	}
	m.annotations[strings.Clone(tool)] = bytes.Clone(annotations)
}

// forget drops what is known of tools: the server says that they changed.
func (m *Memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.annotations)
}

// buckets returns the buckets of the rates, those there are already among them.
// Buckets of a rate that is gone are kept, for it may come back, or the
// configuration that it is missing from may turn out not to be valid.
func (m *Memory) buckets(rates []Rate) []*buckets {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*buckets
	for _, r := range rates {
		if r.Burst == 0 {
			r.Burst = r.Limit
		}
		i := slices.IndexFunc(m.rates, func(b *buckets) bool { return b.Rate.equal(&r) && !slices.Contains(out, b) })
		if i < 0 {
			i = len(m.rates)
			m.rates = append(m.rates, newBuckets(r))
		}
		out = append(out, m.rates[i])
	}
	return out
}

func (r *Rate) equal(o *Rate) bool {
	return slices.Equal(r.Tools, o.Tools) && r.Per == o.Per && r.Limit == o.Limit && r.Window == o.Window && r.Burst == o.Burst
}
