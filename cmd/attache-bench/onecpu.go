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

// A job is what the process that measures on one CPU gets on stdin. It prints
// the p50 in microseconds.
type job struct {
	Plan    plan
	Subject subject
	Frame   frame
}

// measureThere has the job done by a process that may use one CPU only, which
// goes for all it starts.
func measureThere(ctx context.Context, j job) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	told, err := json.Marshal(j)
	if err != nil {
		return 0, err
	}
	var answer bytes.Buffer
	said := &tail{}
	cmd := exec.CommandContext(ctx, self, modeOneCPU)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(told), &answer, said
	cmd.WaitDelay = grace
	if err := machine.StartOnOneCPU(cmd); err != nil {
		return 0, err
	}
	if err := cmd.Wait(); err != nil {
		if s := said.String(); s != "" {
			err = errors.New(strings.TrimPrefix(s, modeOneCPU+": "))
		}
		return 0, err
	}
	var us float64
	return us, json.Unmarshal(answer.Bytes(), &us)
}

// measureHere does the job.
func measureHere(stdin io.Reader, stdout io.Writer) error {
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
