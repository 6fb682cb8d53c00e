package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/attache-mcp/attache/cmd/attache-bench/internal/machine"
)

// A job is the input, on stdin, of a process that measures on one CPU. The process prints
// the p50 in microseconds.
type job struct {
	Plan    plan
	Subject subject
	Frame   frame
}

// start runs the job in a process that may use only one CPU, like every process that it
// starts.
func (j job) start(ctx context.Context) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	input, err := json.Marshal(j)
	if err != nil {
		return 0, err
	}
	var answer bytes.Buffer
	stderr := &tail{}
	cmd := exec.CommandContext(ctx, self, modeOneCPU)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &answer, stderr
	cmd.WaitDelay = grace
	if err := machine.StartOnOneCPU(cmd); err != nil {
		return 0, err
	}
	if err := cmd.Wait(); err != nil {
		if s := stderr.String(); s != "" {
			err = errors.New(strings.TrimPrefix(s, modeOneCPU+": "))
		}
		return 0, err
	}
	var us float64
	return us, json.Unmarshal(answer.Bytes(), &us)
}

// runJob runs the job on stdin.
func runJob(stdin io.Reader, stdout io.Writer) error {
	var j job
	if err := json.NewDecoder(stdin).Decode(&j); err != nil {
		return fmt.Errorf("no job on stdin: attache-bench starts this mode, give it flags instead: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), j.Plan.Timeout)
	defer cancel()
	v, err := sequential(ctx, j.Plan, j.Subject, []row{{name: "one-cpu", frame: j.Frame}})
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(v["one-cpu"])
}
