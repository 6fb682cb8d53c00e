// Behind runs a client with its own front:
//
//	behind FRONT... --- CLIENT... URL
//
// FRONT is the command of an attache serve that logs JSON. Behind replaces the word URL in it,
// starts it, and runs CLIENT with the front's address as the last argument. The conformance
// suite runs Behind as the client under test.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

func main() {
	log.SetFlags(0)
	words := os.Args[1:]
	cut := slices.Index(words, "---")
	if cut < 1 || len(words) < cut+3 {
		log.Fatal("usage: behind FRONT... --- CLIENT... URL")
	}
	front, client, url := words[:cut], words[cut+1:len(words)-1], words[len(words)-1]
	for i := range front {
		if front[i] == "URL" {
			front[i] = url
		}
	}
	status, err := run(front, client)
	if err != nil {
		log.Print(err)
		status = 1
	}
	os.Exit(status)
}

// run runs front and client, and returns the client's exit status.
func run(front, client []string) (int, error) {
	serve := exec.Command(front[0], front[1:]...)
	stderr, err := serve.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := serve.Start(); err != nil {
		return 0, err
	}
	defer serve.Wait()
	defer serve.Process.Signal(syscall.SIGTERM)
	url, err := address(stderr)
	if err != nil {
		return 0, err
	}
	go io.Copy(os.Stderr, stderr)
	cmd := exec.Command(client[0], append(client[1:], url)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// address reads a front's log up to the front's address, and returns it.
func address(stderr io.Reader) (string, error) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			return line.URL, nil
		}
		fmt.Fprintf(os.Stderr, "%s\n", lines.Bytes())
	}
	return "", errors.New("the front ended before it served")
}
