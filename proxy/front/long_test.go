package front

import (
	"io"
	"log/slog"
	"testing"

	"github.com/attache-mcp/attache/proxy/front/internal/answer"
	"github.com/attache-mcp/attache/proxy/front/internal/outbox"
)

// The last part of a long reply says that nothing follows, wherever the server has written the id.
func TestLastPartOfALongReply(t *testing.T) {
	for _, test := range []struct {
		begins, ends string
		final        bool
	}{
		{`{"id":1,"result":`, `{}}`, true},
		{`{"result":`, `{},"id":1}`, true},
		{`{"params":`, `{},"method":"notifications/message"}`, false},
	} {
		s := &session{log: slog.New(slog.DiscardHandler), calls: map[string]*call{}, tokens: map[string]*call{}}
		c := &call{id: "1", Request: answer.Request{Raw: []byte("1")}, stream: newStream(true)}
		check(t, s.add([]*call{c}))
		o := output{s: s}
		for _, part := range []string{test.begins, test.ends + "\n"} {
			_, _ = io.WriteString(&o, part)
		}
		items, closed, _ := c.stream.Take(nil)
		if len(items) != 2 || items[1].Part != outbox.Last || items[1].Final != test.final || closed != test.final {
			t.Errorf("%s… became %d items, the last one %+v; closed is %v", test.begins, len(items), items[len(items)-1], closed)
		}
	}
}
