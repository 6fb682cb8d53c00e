package front

import (
	"testing"

	"github.com/attache-mcp/attache/proxy/front/internal/piece"
)

// Parts of a message that are short take as much memory as long ones, and no more of them wait
// than there is room for.
func TestShortParts(t *testing.T) {
	s := newStream(true)
	n := 0
	for ; n <= streamRoom; n++ {
		data, _ := piece.Cut([]byte("x"))
		if !s.offer(item{data: data, part: middle}) {
			break
		}
	}
	if n*piece.Size > streamRoom {
		t.Errorf("%d parts wait, which take %d bytes", n, n*piece.Size)
	}
}
