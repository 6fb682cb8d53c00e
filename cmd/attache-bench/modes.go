package main

import (
	"fmt"
	"os"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/soak"
)

// The hidden first arguments with which this program starts itself again. None
// looks like a flag or a file name.
const (
	modeServer = "bench:server"
	modeLine   = "bench:line"
	modeCopy   = "bench:copy"

	modeHTTP      = "bench:http"
	modeBridge    = "bench:bridge"
	modeOutBridge = "bench:out-bridge"
	modeReverse   = "bench:reverse"
)

// runMode runs the mode that a hidden first argument names, and returns the exit
// status. It reports false if there is no such argument. It runs before flags are parsed,
// because the time to the first answer is measured.
func runMode(args []string) (status int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	var err error
	switch rest := args[1:]; args[0] {
	case modeServer:
		err = serve(os.Stdin, os.Stdout, rest)
	case modeLine:
		err = relay(rest, copyLines)
	case modeCopy:
		err = relay(rest, copyBytes)
	case modeHTTP:
		err = serveHTTP(rest)
	case modeBridge:
		err = bridge(rest)
	case modeOutBridge:
		outBridge(rest)
	case modeReverse:
		err = reverse(rest)
	case soak.Stdio, soak.HTTP:
		err = soak.Serve(args, os.Stdin, os.Stdout)
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", args[0], err)
		return 1, true
	}
	return 0, true
}
