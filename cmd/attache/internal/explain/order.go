package explain

import (
	"bytes"
	"slices"

	"github.com/attache-mcp/attache/proxy/record"
)

// inOrder sorts the trails of a recording in the order of the client's messages. The probe sees a frame
// that waits for an identity later than others.
func inOrder(seen []*trail, s *record.Session) {
	from := map[*trail]int{}
	used := map[int]bool{} // lines that hold a single frame and are matched; an array holds several
	for _, t := range seen {
		from[t] = len(s.Events)
		for i, e := range s.Events {
			if e.At != record.ClientIn || used[i] || !bytes.Contains(e.Line, t.frames[0]) {
				continue
			}
			from[t], used[i] = i, len(bytes.TrimSpace(e.Line)) == len(t.frames[0])
			break
		}
	}
	slices.SortStableFunc(seen, func(a, b *trail) int { return from[a] - from[b] })
}
