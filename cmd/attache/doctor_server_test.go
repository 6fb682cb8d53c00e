package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/attache-mcp/attache/proxy/wire"
)

// scriptTools are the tools of the server that doctor checks in scripts.
const scriptTools = `[
	{"name":"git_status","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"Path of the workspace"},"repo_path":{"type":"string","description":"Path to the git repository"}},"required":["workspace"]}},
	{"name":"git_init","inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"Path to the git repository"}}}},
	{"name":"create_issue","inputSchema":{"type":"object","properties":{"owner":{"type":"string"},"workspace":{"type":"string","description":"The GID of the workspace"},"tenantId":{"type":["string","null"]},
		"projectId":{"type":"integer"},"project":{"type":"string"},"title":{"type":"string"},"options":{"type":"object","properties":{"cwd":{"type":"string","description":"Working directory"}}}},"required":["owner"]}}]`

// doctorServer is a server for scripts. It appends the methods that it receives to the file said. Its
// arguments select its behaviour:
//
//	legacy, modern   answer in that era
//	obliging         answer any other request with an empty result
//	noisy            write a line to stdout that is not JSON
//	dead             write a secret to stderr and exit
//	stay             do not exit when stdin is closed, and write the pid to the file pid
func doctorServer() {
	is := func(word string) bool { return slices.Contains(os.Args[1:], word) }
	if is("dead") {
		fmt.Fprintln(os.Stderr, "no access with", os.Getenv("MY_TOKEN"))
		os.Exit(4)
	}
	if is("noisy") {
		fmt.Println("listening \x1b[31mnow")
	}
	if is("stay") {
		if err := os.WriteFile("pid", fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			panic(err)
		}
	}
	said, err := os.OpenFile("said", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	tools := strings.NewReplacer("\n", "", "\t", "").Replace(scriptTools)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		frame := wire.Value{Raw: slices.Clone(lines.Bytes())}
		method, id := frame.Get("method").Text(), frame.Get("id")
		fmt.Fprintln(said, method)
		modern := frame.Get("params", "_meta", "io.modelcontextprotocol/protocolVersion").Exists()
		result := ""
		switch {
		case method == "initialize" && is("legacy"):
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"for doctor","version":"1.2"}}`
		case method == "server/discover" && is("modern"):
			result = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
		case method == "tools/list" && (modern && is("modern") || !modern && is("legacy")):
			result = `{"tools":` + tools + `}`
		case is("obliging"):
			result = `{}`
		}
		switch {
		case !id.Exists():
		case result == "":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not here"}}`+"\n", id.Raw)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id.Raw, result)
		}
	}
	if is("stay") {
		select {}
	}
}
