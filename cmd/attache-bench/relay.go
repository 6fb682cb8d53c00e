package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
)

// relay starts the command and copies stdin to it and its stdout back, knowing
// nothing of JSON: what a proxy costs that does nothing at all.
func relay(command []string, forward func(io.Writer, io.Reader)) (status int, err error) {
	if len(command) == 0 {
		return 0, errors.New("no command to relay to: attache-bench starts this mode, give it flags instead")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	childIn, toChild, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	fromChild, childOut, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	cmd.Stdin, cmd.Stdout = childIn, childOut
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	childIn.Close()
	childOut.Close()
	go func() {
		forward(toChild, os.Stdin)
		toChild.Close()
	}()
	forward(os.Stdout, fromChild)
	if err := cmd.Wait(); err != nil {
		return max(1, cmd.ProcessState.ExitCode()), nil
	}
	return 0, nil
}

// copyBytes moves what there is, up to 64 KiB: the floor of a proxy that has to
// look at the bytes.
func copyBytes(dst io.Writer, src io.Reader) {
	buf := make([]byte, 64*kib)
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, werr := dst.Write(buf[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// copyLines writes each line at once when it is whole: the floor of a proxy that
// has to see messages.
func copyLines(dst io.Writer, src io.Reader) {
	r := bufio.NewReaderSize(src, 64*kib)
	var long []byte
	for {
		b, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, b...)
			continue
		}
		if len(long) > 0 {
			long = append(long, b...)
			b = long
		}
		if len(b) > 0 {
			if _, werr := dst.Write(b); werr != nil {
				return
			}
		}
		if long = long[:0]; cap(long) > mib {
			long = nil
		}
		if err != nil {
			return
		}
	}
}
