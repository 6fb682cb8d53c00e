// Tee runs a command, copies its stdin and stdout to DIR/NAME-*.in and DIR/NAME-*.out, and
// otherwise passes them through:
//
//	tee DIR NAME COMMAND [ARG...]
//
// Copies in front of and behind a proxy show whether the proxy changed a byte. Tee forwards
// signals to the command, and exits with the command's exit status.
package main

import (
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("tee: ")
	if len(os.Args) < 4 {
		log.Fatal("usage: tee DIR NAME COMMAND [ARG...]")
	}
	status, err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(status)
}

func run(dir, name, command string, args []string) (int, error) {
	in, err := os.CreateTemp(dir, name+"-*.in")
	if err != nil {
		return 0, err
	}
	out, err := os.Create(strings.TrimSuffix(in.Name(), ".in") + ".out")
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(command, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have exited
		}
	}()
	go func() {
		_, _ = io.Copy(stdin, io.TeeReader(os.Stdin, in)) // an error means that the command has exited
		_ = stdin.Close()
	}()
	if _, err := io.Copy(os.Stdout, io.TeeReader(stdout, out)); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return 128 + int(ws.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	return 0, err
}
