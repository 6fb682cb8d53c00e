package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// envServer is a server for scripts. It writes to stderr the variables of its session and its arguments.
func envServer() {
	env := os.Environ()
	slices.Sort(env)
	for _, entry := range env {
		if strings.HasPrefix(entry, "PARACHUTE_") || strings.HasPrefix(entry, "SERVER_") {
			fmt.Fprintln(os.Stderr, entry)
		}
	}
	fmt.Fprintln(os.Stderr, strings.Join(os.Args[1:], "|"))
}

// startEntry is a script command: "startentry FILE NAME" starts a server by its entry in a configuration, like
// a client, sends it one line, and checks that it exits without an error.
func startEntry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: startentry file name")
	}
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		} `json:"mcpServers"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &config))
	server, ok := config.MCPServers[args[1]]
	if !ok {
		ts.Fatalf("no server %q", args[1])
	}
	path, err := exec.LookPath(server.Command)
	ts.Check(err)
	cmd := exec.Command(path, server.Args...)
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH")}
	for name, value := range server.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Run())
}
