//go:build !unix

package login

import "os/exec"

// setApart does nothing: the program that opens the browser there ends immediately.
func setApart(*exec.Cmd) {}
