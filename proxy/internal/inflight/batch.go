package inflight

import (
	"github.com/attache-mcp/attache/proxy/internal/array"
	"github.com/attache-mcp/attache/proxy/wire"
)

// A Batch is a line of the client that is an array of messages (revision 2025-03-26). Its members are
// judged one by one and sent on as one line. Answers that attache makes are added to the server's
// array of replies.
type Batch struct {
	// Array has the members that go on.
	array.Array

	// Guarded by Table.mu:
	open    int             // members that were sent and have no reply
	written bool            // the line was written
	answers []*wire.Message // answers that wait for the server's array
	sent    []func(error)   // functions to call when answers were written
}

// AnswerLater keeps an answer for the server's array.
func (t *Table) AnswerLater(b *Batch, reply *wire.Message, sent []func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.answers = append(b.answers, reply)
	t.bytes += len(reply.Line())
	b.sent = append(b.sent, sent...)
}

// BatchWritten records that the line of the batch was written.
func (t *Table) BatchWritten(b *Batch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.written = true
}

// TakeAnswers removes and returns the answers that can be written: when no member waits for the server
// any more, or when company is true because a reply of the server is written with them.
func (t *Table) TakeAnswers(b *Batch, company bool) (answers []*wire.Message, sent []func(error)) {
	if b == nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// Before the line is written, open counts only the members that were handled so far.
	if !b.written || b.open > 0 && !company {
		return nil, nil
	}
	answers, sent = b.answers, b.sent
	b.answers, b.sent = nil, nil
	for _, reply := range answers {
		t.bytes -= len(reply.Line())
	}
	t.makeRoom()
	return answers, sent
}
