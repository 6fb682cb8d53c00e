package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
)

// relay starts the command and copies stdin to it and its stdout back. It knows
// nothing of JSON: it shows what a proxy costs that does nothing at all.
func relay(command []string, forward func(io.Writer, io.Reader)) error {
	if len(command) == 0 {
		return errors.New("no command to relay to: attache-bench starts this mode, give it flags instead")
	}
	cmd, in, out, err := startPiped(command)
	if err != nil {
		return err
	}
	go func() {
		forward(in, os.Stdin)
		in.Close()
	}()
	forward(os.Stdout, out)
	return cmd.Wait()
}

// startPiped starts a command, and returns pipes to its stdin and from its stdout.
func startPiped(command []string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader, err error) {
	cmd = exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	if in, out, err = pipes(cmd, 64*kib); err == nil {
		err = cmd.Start()
	}
	return cmd, in, out, err
}

// copyBytes copies up to 64 KiB at a time: the least work for a proxy that looks
// at the bytes. The structs hide ReadFrom, which would let the kernel copy.
func copyBytes(dst io.Writer, src io.Reader) {
	_, _ = io.CopyBuffer(struct{ io.Writer }{dst}, struct{ io.Reader }{src}, make([]byte, 64*kib))
}

// copyLines writes each line as soon as it is complete: the least work for a proxy
// that looks at messages.
func copyLines(dst io.Writer, src io.Reader) {
	r := bufio.NewReaderSize(src, 64*kib)
	var long []byte
	for {
		b, _, err := readLine(r, &long)
		if len(b) > 0 {
			if _, werr := dst.Write(b); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
		if cap(long) > mib {
			long = nil
		}
	}
}
