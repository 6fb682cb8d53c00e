package revive

import (
	"bytes"
	"fmt"
	"time"

	"github.com/attache-mcp/attache/proxy/wire"
)

// ExitLine returns the line of a recording for a server that has ended (R19). unsent has the
// lines that the server did not read.
func (e Ending) ExitLine(unsent ...[]byte) []byte {
	var ids [][]byte
	for line := range bytes.Lines(bytes.Join(unsent, nil)) {
		Requests(line, func(m *wire.Message) { ids = append(ids, bytes.Clone(m.ID())) })
	}
	return fmt.Appendf(nil, `{"exit":%s,"session_lost":%t,"unsent":[%s]}`+"\n", wire.Quote(e.Exit+e.More), e.lost, bytes.Join(ids, []byte{','}))
}

// StopLine returns the line of a recording for a server that ended because its session had ended.
func (e Ending) StopLine() []byte {
	return fmt.Appendf(nil, `{"exit":%s}`+"\n", wire.Quote(e.Exit+e.More))
}

// StartLine returns the line of a recording for the server of l, which replaced another one.
func (l *Link) StartLine() []byte {
	return fmt.Appendf(nil, `{"time":%q}`+"\n", l.started.UTC().Format(time.RFC3339))
}
