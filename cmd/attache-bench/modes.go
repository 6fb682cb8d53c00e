package main

import (
	"fmt"
	"os"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/soak"
)

// The hidden first arguments with which this program starts itself again. None
// can be taken for a flag or a file.
const (
	modeServer = "bench:server"
	modeLine   = "bench:line"
	modeCopy   = "bench:copy"
	modeOneCPU = "bench:one-cpu"

	modeHTTP      = "bench:http"
	modeBridge    = "bench:bridge"
	modeOutBridge = "bench:out-bridge"
	modeReverse   = "bench:reverse"
)

// runMode plays the part that the hidden argument names, if there is one, and
// returns the status to exit with. It comes before the flags and everything
// else, because the time until the first answer is measured.
func runMode(args []string) (status int, ok bool) {
	if len(args) == 0 {
		return 0, false
	}
	var err error
	switch args[0] {
	case modeServer:
		err = serve(os.Stdin, os.Stdout, args[1:])
	case modeLine:
		status, err = relay(args[1:], copyLines)
	case modeCopy:
		status, err = relay(args[1:], copyBytes)
	case modeOneCPU:
		err = measureHere(os.Stdin, os.Stdout)
	case modeHTTP:
		err = serveHTTP(args[1:])
	case modeBridge:
		err = bridge(args[1:])
	case modeOutBridge:
		err = outBridge(args[1:])
	case modeReverse:
		err = reverse(args[1:])
	case soak.Stdio, soak.HTTP:
		err = soak.Play(args, os.Stdin, os.Stdout)
	default:
		return 0, false
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", args[0], err)
		return 1, true
	}
	return status, true
}
