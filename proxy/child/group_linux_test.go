package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A watch waits for the end of a process, which need not be a child of the test. It opens a
// pidfd while the process runs, so it does not confuse another process with the same id. A zombie
// counts as ended.
type watch struct{ pid, fd int }

func watchProcess(t testing.TB, pid int) watch {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("pidfd of %d: %v", pid, err)
	}
	t.Cleanup(func() {
		unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		unix.Close(fd)
	})
	return watch{pid, fd}
}

// ended reports whether the process ends within d.
func (w watch) ended(d time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(w.fd), Events: unix.POLLIN}}
	for end := time.Now().Add(d); ; {
		n, err := unix.Poll(fds, int(max(time.Until(end), 0).Milliseconds()))
		if err != unix.EINTR {
			return n == 1
		}
	}
}

// watchAll reads process ids, one per line, up to a line "ready".
func watchAll(t testing.TB, r *bufio.Reader) []watch {
	t.Helper()
	var all []watch
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("no line \"ready\": %v", err)
		}
		if line == "ready\n" {
			return all
		}
		var pid int
		if _, err := fmt.Sscan(line, &pid); err != nil {
			t.Fatalf("no process id: %q", line)
		}
		all = append(all, watchProcess(t, pid))
	}
}

func expectEnded(t testing.TB, all []watch) {
	t.Helper()
	if len(all) == 0 {
		t.Error("nothing was watched")
	}
	for _, w := range all {
		if !w.ended(5 * time.Second) {
			t.Errorf("process %d still runs", w.pid)
		}
	}
}

// trees are scripts that start further processes. Each prints the ids of all processes and then
// "ready".
var trees = []struct{ name, script string }{
	{"background", "sleep 1000 & echo $!; sleep 1000 & echo $!; echo $$; echo ready; "},
	{"ignoring TERM and HUP", "trap '' TERM HUP INT; sleep 1000 & echo $!; sleep 1000 & echo $!; echo $$; echo ready; "},
	{"nothing inherited", "trap '' TERM HUP; sleep 1000 <&- >&- 2>&- & echo $!; echo $$; echo ready; "},
	{"three deep", "sh -c 'sh -c \"sleep 1000 & echo \\$!; echo \\$\\$; echo ready; wait\" & echo $!; wait' & echo $!; "},
}

func TestNothingLeftAfterStop(t *testing.T) {
	for _, tree := range trees {
		t.Run(tree.name, func(t *testing.T) {
			o := sh(tree.script + "wait")
			o.Grace, o.TermGrace = 10*time.Millisecond, 10*time.Millisecond
			p := start(t, o)
			all := watchAll(t, lines(p))
			p.Stop(t.Context())
			expectEnded(t, all)
		})
	}
}

// When a launcher ends before the server that it started, the server is ended too.
func TestNothingLeftAfterTheProcess(t *testing.T) {
	for _, tree := range trees {
		t.Run(tree.name, func(t *testing.T) {
			o := sh(tree.script + "read x; exit 5")
			o.TermGrace = 10 * time.Millisecond
			p := start(t, o)
			r := lines(p)
			all := watchAll(t, r)
			p.CloseStdin()
			readAll(t, r)
			if exit, want := p.Wait(), (Exit{Code: 5, Leftover: true}); exit != want {
				t.Errorf("Wait() = %+v, want %+v", exit, want)
			}
			expectEnded(t, all)
		})
	}
}

// Wait does not wait for zombies that nobody reaps, as in a container whose first process does not
// reap: the grace ends when no process runs any more.
func TestZombiesAreNotWaitedFor(t *testing.T) {
	o := sh(fmt.Sprintf("%s=bystander %q & read x", roleEnv, os.Args[0])) // TermGrace is a minute
	o.Drain = time.Millisecond
	p := start(t, o)
	r := lines(p)
	watchAll(t, r)
	began := time.Now()
	p.CloseStdin()
	readAll(t, r)
	p.Wait()
	if took := time.Since(began); took > long/2 {
		t.Errorf("Wait took %v", took)
	}
}

// Wait neither ends nor waits for a process that has left the group.
func TestStdoutHeldByADaemon(t *testing.T) {
	o := sh("setsid sh -c 'echo $$; echo ready; exec sleep 1000' & read x")
	o.Drain = 20 * time.Millisecond
	p := start(t, o)
	r := lines(p)
	daemon := watchAll(t, r)
	p.CloseStdin()
	if rest := readAll(t, r); rest != "" {
		t.Errorf("the process then wrote %q", rest)
	}
	p.Wait()
	if daemon[0].ended(0) {
		t.Error("the daemon ended too, so the test proves nothing")
	}
}

// A daemon that never stops writing does not keep the reader busy forever.
func TestStdoutFloodedByADaemon(t *testing.T) {
	o := sh("setsid sh -c 'echo $$; echo ready; exec yes' & read x")
	o.Drain = 20 * time.Millisecond
	p := start(t, o)
	r := lines(p)
	watchAll(t, r)
	p.CloseStdin()
	readAll(t, r)
	p.Wait()
}

// However this process ends, all processes that it started end too.
func TestNothingLeftAfterUs(t *testing.T) {
	for _, end := range []string{"is killed", "exits", "panics"} {
		for _, tree := range trees {
			t.Run(end+"/"+tree.name, func(t *testing.T) {
				cmd := exec.Command(os.Args[0], tree.script+"exec <&-; wait", end)
				cmd.Env = append(os.Environ(), roleEnv+"=wrapper", "GORACE=atexit_sleep_ms=0")
				in, _ := cmd.StdinPipe()
				out, _ := cmd.StdoutPipe()
				check(t, cmd.Start())
				all := watchAll(t, bufio.NewReader(out))
				fmt.Fprintln(in, "now")
				cmd.Wait()
				expectEnded(t, all)
			})
		}
	}
}

// Before the guard is armed, the server does not run, so it has no children that could
// outlive this process.
func TestNothingRunsUnguarded(t *testing.T) {
	if !mayTrace("/bin/sh") {
		t.Skip("system calls are filtered here, so the child is not traced")
	}
	cmd := exec.Command(os.Args[0], "echo begun; sleep 10 & wait")
	cmd.Env = append(os.Environ(), roleEnv+"=unguarded", "GORACE=atexit_sleep_ms=0")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	stderr, _ := cmd.StderrPipe()
	check(t, cmd.Start())
	var pid int
	if _, err := fmt.Fscan(stderr, &pid); err != nil {
		t.Fatal(err)
	}
	server := watchProcess(t, pid)
	if state, _ := stat(strconv.Itoa(pid)); state != "t" {
		t.Errorf("before its guard is armed the server is in state %q, want t", state)
	}
	fmt.Fprintln(in, "now")
	if text := readAll(t, out); text != "" { // returns when no process holds stdout
		t.Errorf("the server ran: %q", text)
	}
	cmd.Wait()
	expectEnded(t, []watch{server})
}

// A program whose file has privileges would not get them while traced.
func TestPrivilegedFileIsNotTraced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server")
	check(t, os.WriteFile(file, []byte(elfMagic), 0o755))
	if !mayTrace(file) {
		t.Skip("system calls are filtered here, so no file is traced")
	}
	for _, privilege := range []os.FileMode{os.ModeSetuid, os.ModeSetgid} {
		check(t, os.Chmod(file, 0o755|privilege))
		if mayTrace(file) {
			t.Errorf("a file of mode %v is traced", privilege)
		}
	}
	check(t, os.Chmod(file, 0o755))
	capabilities := append([]byte{1, 0, 0, 2}, make([]byte, 16)...) // revision 2 with effective capabilities, of which there are none
	if err := unix.Setxattr(file, "security.capability", capabilities, 0); err == nil && mayTrace(file) {
		t.Error("a file with capabilities is traced")
	}
}

// PR_SET_PDEATHSIG refers to the thread that forked, not to the process. Start keeps its thread.
func TestThreadOfStartEnds(t *testing.T) {
	started, tid := make(chan *Process), 0
	go func() {
		runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
		tid = unix.Gettid()
		started <- start(t, sh("exec cat"))
	}()
	p := <-started
	if tid != os.Getpid() { // the first thread does not end
		watchThreadEnd(t, tid)
	}
	fmt.Fprintln(p.Stdin(), "still there")
	expect(t, lines(p), "still there")
}

func watchThreadEnd(t *testing.T, tid int) {
	for deadline := time.Now().Add(long); unix.Tgkill(os.Getpid(), tid, 0) == nil; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("thread %d does not end", tid)
		}
	}
}

// The guard ends the group without PR_SET_PDEATHSIG, whichever descriptor is closed first.
func TestGuard(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint("descriptor ", i), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sleep", "1000")
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			check(t, cmd.Start())
			w := watchProcess(t, cmd.Process.Pid)
			g, err := newGuard()
			check(t, err)
			check(t, g.arm(cmd.Process.Pid))
			fd := &g.pipes[i/2][i%2]
			unix.Close(*fd)
			*fd = -1
			if !w.ended(long) {
				t.Error("closing the descriptor did not end the process")
			}
			cmd.Process.Kill()
			cmd.Wait()
			g.close()
		})
	}
}

// A process that a member of the group forks, while the kernel signals the members one by one,
// ends too.
func TestForkingGroupEndsWithUs(t *testing.T) {
	t.Parallel()
	for i := range 60 { // one after another, as each may have hundreds of processes
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			endsWithUs(t, "wrapper", "is killed", "i=0; while [ $i -lt 400 ]; do i=$((i+1)); (sleep 60 & wait) & done; wait")
		})
	}
}

// Pipes that cannot be armed are an error.
func TestGuardWithoutGroup(t *testing.T) {
	g, err := newGuard()
	check(t, err)
	defer g.close()
	if err := g.armPipes(1 << 30); err == nil || !strings.Contains(err.Error(), "F_SETOWN") {
		t.Errorf("pipes: %v", err)
	}
}

// The process inherits the same descriptors as without this package.
func TestInheritedDescriptors(t *testing.T) {
	const script = "echo /proc/$$/fd/*; for i in 0 1 2; do grep flags /proc/self/fdinfo/$i; done"
	p := start(t, sh(script))
	got := strings.SplitAfterN(readAll(t, p.Stdout()), "\n", 2)
	direct, err := exec.Command("/bin/sh", "-c", script).Output()
	check(t, err)
	want := strings.SplitAfterN(string(direct), "\n", 2)
	pid := regexp.MustCompile(`/proc/\d+`)
	if g, w := pid.ReplaceAllString(got[0], ""), pid.ReplaceAllString(want[0], ""); g != w {
		t.Errorf("descriptors %q, want %q as with os/exec", g, w)
	}
	for line := range strings.Lines(got[1]) {
		var flags int
		if _, err := fmt.Sscanf(line, "flags: %o", &flags); err != nil {
			t.Fatalf("flags: %q", line)
		}
		if flags&unix.O_NONBLOCK != 0 {
			t.Errorf("a descriptor is non-blocking: %q", got[1])
		}
	}
}

// This process polls its ends of the pipes: deadlines work, and the descriptor of stdout is
// non-blocking.
func TestPipesArePolled(t *testing.T) {
	p := start(t, sh("exec cat"))
	if err := p.Stdin().SetWriteDeadline(time.Now().Add(long)); err != nil {
		t.Error("stdin:", err)
	}
	conn, err := p.Stdout().SyscallConn()
	check(t, err)
	conn.Control(func(fd uintptr) {
		if flags, _ := unix.FcntlInt(fd, unix.F_GETFL, 0); flags&unix.O_NONBLOCK == 0 {
			t.Error("stdout is blocking")
		}
	})
}

// A thread in wait4 would keep one of the runtime's processors; see await.
func TestNoThreadWaitsForTheProcess(t *testing.T) {
	p := start(t, sh("exec cat"))
	fmt.Fprintln(p.Stdin(), "here")
	expect(t, lines(p), "here")
	tasks, err := filepath.Glob("/proc/self/task/*/syscall")
	if err != nil || len(tasks) == 0 {
		t.Skip("this system does not show the system calls of threads:", err)
	}
	for _, task := range tasks {
		now, _ := os.ReadFile(task) // a thread may have ended
		if call, _, _ := strings.Cut(string(now), " "); call == strconv.Itoa(unix.SYS_WAIT4) {
			t.Errorf("%s: a thread is in wait4", task)
		}
	}
}

func TestNothingLeaks(t *testing.T) {
	once := func() {
		for _, script := range []string{"exit 3", "kill -9 $$", "echo x >&2", "sleep 1000 & exit 0"} {
			o := sh(script)
			o.Stderr = new(strings.Builder)
			p, err := Start(t.Context(), o)
			check(t, err)
			readAll(t, p.Stdout())
			p.Stop(t.Context())
		}
		for _, o := range []Options{{}, {Argv: []string{"/no/such/file"}}} {
			if _, err := Start(t.Context(), o); err == nil {
				t.Fatal("Start succeeded")
			}
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection closes files that nobody refers to
	once()                                           // the runtime opens files for itself the first time
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 5 {
		once()
	}
	if now := openFiles(t); now > files {
		t.Errorf("%d open files, before %d", now, files)
	}
	// A goroutine may still be about to end.
	for deadline := time.Now().Add(long); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, before %d:\n%s", runtime.NumGoroutine(), goroutines, buf[:runtime.Stack(buf, true)])
		}
	}
}

func openFiles(t *testing.T) int {
	files, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(files)
}

// As process 1 of a container, attache is the parent of all processes whose parent has ended.
func TestAdoptedProcessesAreReaped(t *testing.T) {
	check(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	for _, script := range []string{
		"sleep 1000 & sleep 1000 & echo ready; read x",
		"trap '' TERM; sleep 1000 & sleep 1000 & echo ready; read x",
		"(true &); (true &); echo ready; read x",
	} {
		o := sh(script)
		o.TermGrace = 20 * time.Millisecond
		p := start(t, o)
		expect(t, lines(p), "ready")
		p.Stop(t.Context())
		if pid, err := syscall.Wait4(-p.Pid(), nil, syscall.WNOHANG, nil); err != syscall.ECHILD {
			t.Errorf("%s: process %d was not reaped: %v", script, pid, err)
		}
	}
}
