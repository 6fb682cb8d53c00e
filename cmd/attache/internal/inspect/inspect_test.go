package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"testing"
)

// TestNumericIDs lists the tools of a server that accepts only numbers as ids, as servers made with
// Effect do, and whose requests have the same ids. It lists its tools after the client has answered these:
// mcp-shrimp-task-manager 1.0.21 asks every client for its roots. Clients take an empty cursor for the end.
func TestNumericIDs(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	go func() {
		defer out.Close()
		for requests := json.NewDecoder(in); ; {
			var r struct {
				ID            *int64
				Method        string
				Result, Error json.RawMessage
			}
			if requests.Decode(&r) != nil {
				return
			}
			answer := ""
			switch {
			case r.ID == nil:
				continue
			case r.Method != "":
				answer = `"method":"ping"`
			case r.Result != nil:
				answer = `"method":"roots/list"`
			case r.Error != nil:
				answer = `"result":{"tools":[{"name":"a"}],"nextCursor":""}`
			}
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", *r.ID, answer)
		}
	}()
	tools, err := NewClient(toServer, fromServer).List()
	if want := `[{"name":"a"}]`; err != nil || string(tools) != want {
		t.Errorf("List returned %s, %v; want %s", tools, err, want)
	}
}

// zeros is a server that writes without end, and no line.
type zeros struct{ written int }

func (z *zeros) Read(b []byte) (int, error) {
	z.written += len(b)
	return len(b), nil
}

func TestEndlessAnswer(t *testing.T) {
	z := &zeros{}
	_, err := NewClient(io.Discard, z).List()
	if err == nil || err.Error() != "it wrote more than 64 MiB and no answer to initialize" {
		t.Errorf("List returned %v", err)
	}
	if z.written > maxOutput {
		t.Errorf("%d bytes were read", z.written)
	}
}
