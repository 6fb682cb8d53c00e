package access

import (
	"bytes"
	"strings"
	"sync"
)

// Annotations holds what one server said of its tools in tools/list. The zero
// value is empty.
type Annotations struct {
	mu     sync.Mutex // lists pass in one direction and calls in the other
	byTool map[string][]byte
}

const (
	// maxLearnt bounds the number of tools whose annotations are kept.
	maxLearnt = 10_000
	// maxAnnotations bounds the annotations of one tool, in bytes; longer ones are
	// ignored.
	maxAnnotations = 4 << 10
)

func (a *Annotations) of(tool string) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byTool[tool]
}

func (a *Annotations) learn(tool string, annotations []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.byTool[tool]; !known && len(a.byTool) >= maxLearnt {
		clear(a.byTool)
	}
	if a.byTool == nil {
		a.byTool = map[string][]byte{}
	}
	a.byTool[strings.Clone(tool)] = bytes.Clone(annotations)
}

// forget drops everything, because the server says that its tools changed.
func (a *Annotations) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.byTool)
}
