//go:build unix

package child

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// roleEnv is a variable that makes the test binary play a role in one of its own tests.
const roleEnv = "ATTACHE_CHILD_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "wrapper":
		wrapper()
	case "watched":
		watched()
	case "unguarded":
		unguarded()
	case "bystander":
		bystander()
	default:
		for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
			if signal.Ignored(sig) {
				// Under nohup or in a background job the signal is ignored, and children would
				// ignore it too. If this process handles it, children get the default action.
				signal.Notify(make(chan os.Signal, 1), sig)
			}
		}
		os.Exit(m.Run())
	}
}

// wrapper plays attache: it runs the script in its first argument and copies the script's stdout.
// When it reads a line, it ends as its second argument says.
func wrapper() {
	o := sh(os.Args[1])
	o.Stderr = os.Stderr
	p, err := Start(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if err := p.GuardErr(); err != nil {
		fmt.Println(err)
	}
	go bufio.NewReader(p.Stdout()).WriteTo(os.Stdout)
	endAs(os.Args[2])
}

// endAs waits for a line and ends the process.
func endAs(end string) {
	bufio.NewReader(os.Stdin).ReadString('\n')
	switch end {
	case "exits":
		os.Exit(0)
	case "panics":
		panic("on purpose")
	default:
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

// watched is a wrapper that uses a watcher and no guard of the kernel.
func watched() {
	cmd := exec.Command("/bin/sh", "-c", os.Args[1])
	cmd.Stdout = os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
	}
	if _, err := watchGroup(cmd.Process.Pid); err != nil {
		fmt.Println(err)
	}
	endAs(os.Args[2])
}

// unguarded plays attache after it has forked a server and before it arms the guard.
func unguarded() {
	runtime.LockOSThread()
	o := sh(os.Args[1])
	pid, _, err := forkHalted(o.Argv[0], o, &syscall.ProcAttr{
		Env: o.Env, Sys: attributes(), Files: []uintptr{os.Stdin.Fd(), os.Stdout.Fd(), os.Stderr.Fd()},
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Fprintln(os.Stderr, pid)
	endAs("")
}

// bystander starts a process in its group, leaves the group, and never reaps.
func bystander() {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
	}
	if err := syscall.Setpgid(0, 0); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%d\n%d\nready\n", cmd.Process.Pid, os.Getpid())
	<-time.After(time.Hour) // it is killed before; select {} would end it as a deadlock
}
