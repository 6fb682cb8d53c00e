package main

import (
	"context"
	"encoding/json"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addWitnesses adds the two tools for the test of hostile frames. They write each call to a
// file as a line of JSON.
func (f *fixture) addWitnesses(file string) {
	for _, name := range []string{"drop", "keep"} {
		tool := &mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object","properties":{"tenant":{"type":"string"}}}`)}
		f.server.AddTool(tool, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var in map[string]any
			if err := json.Unmarshal(req.Params.Arguments, &in); err != nil && len(req.Params.Arguments) > 0 {
				return nil, err
			}
			w, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			defer w.Close()
			_, err = w.WriteString(inJSON(map[string]any{"tool": name, "tenant": in["tenant"]}) + "\n")
			return text("ran"), err
		})
	}
}
