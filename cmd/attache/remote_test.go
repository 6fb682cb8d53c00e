package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attache-mcp/attache/proxy/wire"
)

// remoteServer is a script command: "remoteserver FILE..." starts an HTTP server with sessions. It replaces
// REMOTE in the files with the server's address and sets the variable REMOTE to it. The server writes each
// request, with its headers, as a line of requests.txt.
func remoteServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: remoteserver FILE...")
	}
	requests, err := os.Create(ts.MkAbs("requests.txt"))
	ts.Check(err)
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprint(requests, r.Method)
		for _, name := range slices.Sorted(maps.Keys(r.Header)) {
			fmt.Fprintf(requests, " %s=%s", name, strings.Join(r.Header[name], ","))
		}
		fmt.Fprintf(requests, " %s\n", body)
		answerRemote(w, r, body)
	}))
	ts.Defer(func() { server.Close(); requests.Close() })
	ts.Setenv("REMOTE", server.URL+"/mcp")
	for _, file := range args {
		data, err := os.ReadFile(ts.MkAbs(file))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(strings.ReplaceAll(string(data), "REMOTE", server.URL+"/mcp")), 0o600))
	}
}

// answerRemote answers one request. The tool "echo" returns its arguments.
func answerRemote(w http.ResponseWriter, r *http.Request, body []byte) {
	m := wire.Parse(wire.Client, body)
	switch {
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case r.Method == http.MethodDelete:
		return
	case m.Kind() != wire.Request:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch m.Method() {
	case "initialize":
		w.Header().Set("Mcp-Session-Id", "the-session")
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"remote","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"echo","description":"Echo.","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"The path of the workspace"},"text":{"type":"string"}},"required":["workspace"]}}]}`
	case "tools/call":
		result = `{"content":[{"type":"text","text":` + string(wire.Quote(string(m.Get("params", "arguments").Raw))) + `}]}`
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID(), result)
}
