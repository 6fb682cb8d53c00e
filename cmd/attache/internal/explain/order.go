package explain

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/attache-mcp/attache/proxy/record"
)

// inOrder sorts the trails of a recording in the order of the client's messages. The probe sees a frame
// that waits for an identity later than others.
func inOrder(seen []*trail, s *record.Session) {
	type place struct{ event, offset int } // the offset in the line matters for members of an array
	from := map[*trail]place{}
	used := map[int]bool{} // lines that hold a single frame and are matched; an array holds several
	for _, t := range seen {
		from[t] = place{event: len(s.Events)}
		for i, e := range s.Events {
			if e.At != record.ClientIn || used[i] {
				continue
			}
			offset := bytes.Index(e.Line, t.frames[0])
			if offset < 0 {
				continue
			}
			from[t], used[i] = place{i, offset}, len(bytes.TrimSpace(e.Line)) == len(t.frames[0])
			break
		}
	}
	slices.SortStableFunc(seen, func(a, b *trail) int {
		return cmp.Or(from[a].event-from[b].event, from[a].offset-from[b].offset)
	})
}
