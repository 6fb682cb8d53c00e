//go:build unix

package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// long is a grace that no test should use up.
const long = time.Minute

// sh returns the options of a shell script. Its graces are long.
func sh(script string) Options {
	return Options{
		Argv:      []string{"/bin/sh", "-c", script},
		Env:       []string{"PATH=" + os.Getenv("PATH")},
		Grace:     long,
		TermGrace: long,
		Drain:     long,
	}
}

// lines reads stdout line by line.
func lines(p *Process) *bufio.Reader { return bufio.NewReader(p.Stdout()) }

func expect(t testing.TB, r *bufio.Reader, want string) {
	t.Helper()
	got, err := r.ReadString('\n')
	if err != nil || got != want+"\n" {
		t.Fatalf("read %q, %v; want %q", got, err, want)
	}
}

func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	b, err := io.ReadAll(r)
	check(t, err)
	return string(b)
}

func TestExit(t *testing.T) {
	for _, tt := range []struct {
		script string
		want   Exit
		status int
		text   string
	}{
		{"exit 0", Exit{}, 0, "exit status 0"},
		{"exit 3", Exit{Code: 3}, 3, "exit status 3"},
		{"exit 255", Exit{Code: 255}, 255, "exit status 255"},
		{"kill -TERM $$", Exit{Code: -1, Signal: syscall.SIGTERM}, 143, "signal SIGTERM"},
		{"kill -KILL $$", Exit{Code: -1, Signal: syscall.SIGKILL}, 137, "signal SIGKILL"},
		{"kill -HUP $$", Exit{Code: -1, Signal: syscall.SIGHUP}, 129, "signal SIGHUP"},
		{"nosuchcommand 2>/dev/null", Exit{Code: 127}, 127, "exit status 127"},
	} {
		t.Run(tt.script, func(t *testing.T) {
			p := start(t, sh(tt.script))
			readAll(t, p.Stdout())
			<-p.Done()
			exit := p.Wait()
			if exit != tt.want || exit.Status() != tt.status || exit.String() != tt.text {
				t.Errorf("Wait() = %+v, status %d, %q; want %+v, %d, %q",
					exit, exit.Status(), exit, tt.want, tt.status, tt.text)
			}
			if again := p.Stop(t.Context()); again != exit {
				t.Errorf("Stop after the end = %+v, want %+v", again, exit)
			}
		})
	}
	if unknown := (Exit{Code: -1}); unknown.Status() != 1 || unknown.String() != "unknown exit status" {
		t.Errorf("unknown end: status %d, %q", unknown.Status(), unknown)
	}
}

func TestEnvironmentAndDirectory(t *testing.T) {
	o := sh(`echo "$FOO|$HOME|$(pwd)|$0"`)
	o.Argv = append(o.Argv, "arg zero")
	o.Env = append(o.Env, "FOO=bar baz")
	o.Dir, _ = filepath.EvalSymlinks(t.TempDir())
	p := start(t, o)
	if got, want := readAll(t, p.Stdout()), "bar baz||"+o.Dir+"|arg zero\n"; got != want {
		t.Errorf("stdout %q, want %q", got, want)
	}
	if p.Path() != "/bin/sh" || p.Pid() <= 0 {
		t.Errorf("Path %q, Pid %d", p.Path(), p.Pid())
	}
}

// The last output is not lost if Wait returns before it was read.
func TestLastLinesOfStdout(t *testing.T) {
	for _, size := range []int{1, 60_000, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			p := start(t, sh(fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size)))
			go p.Wait()
			if n := len(readAll(t, p.Stdout())); n != size {
				t.Errorf("read %d bytes of %d", n, size)
			}
		})
	}
}

// A reader that starts after the cut still gets the output from before it.
func TestReaderAfterTheCut(t *testing.T) {
	o := sh("head -c 60000 /dev/zero | tr '\\0' x")
	o.Drain = -1
	p := start(t, o)
	p.Wait()
	if n := len(readAll(t, p.Stdout())); n != 60000 {
		t.Errorf("read %d bytes of 60000", n)
	}
}

// Reading after the cut has a limit.
func TestLimitAfterTheCut(t *testing.T) {
	r, w, err := os.Pipe()
	check(t, err)
	defer w.Close() // the pipe stays open
	fmt.Fprint(w, "0123456789")
	o := newOutput(r)
	o.left = 7
	o.cut(time.Now())
	if got := readAll(t, o); got != "0123456" {
		t.Errorf("read %q", got)
	}
	if _, err := o.Read(nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("read after the end: %v", err)
	}
}

func TestStdinReachesTheProcess(t *testing.T) {
	p := start(t, sh("exec cat"))
	r := lines(p)
	for _, line := range []string{"one", "two"} {
		fmt.Fprintln(p.Stdin(), line)
		expect(t, r, line)
	}
	if exit := p.Stop(t.Context()); exit != (Exit{}) {
		t.Errorf("Stop() = %+v", exit)
	}
	if _, err := p.Stdin().Write([]byte("late\n")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("write after the end: %v", err)
	}
}

// A process that does not read its stdin can be stopped during a write to it.
func TestCloseStdinUnblocksWrite(t *testing.T) {
	p := start(t, sh("echo ready; exec sleep 1000"))
	expect(t, lines(p), "ready")
	failed := make(chan error, 1)
	go func() {
		_, err := p.Stdin().Write(make([]byte, 1<<20))
		failed <- err
	}()
	// The data is more than a pipe holds, so the write blocks or is about to block.
	p.CloseStdin()
	if err := <-failed; !errors.Is(err, os.ErrClosed) {
		t.Errorf("blocked write: %v", err)
	}
}

func TestStdinClosedByTheProcess(t *testing.T) {
	p := start(t, sh("exec 0<&-; echo closed; exec sleep 1000"))
	expect(t, lines(p), "closed")
	if _, err := p.Stdin().Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write: %v, want EPIPE", err)
	}
}

// readForever is the end of a script that only runs its traps. It starts no process, because
// between fork and exec a child of the shell would lose the signals that have a trap.
const readForever = "while :; do read x; done"

func TestLadder(t *testing.T) {
	const ignoring = "trap '' TERM INT HUP; echo ready; sleep 1000"
	for _, tt := range []struct {
		name      string
		script    string
		grace     time.Duration
		termGrace time.Duration
		want      Exit
		rest      string // of stdout
	}{
		{"ends with stdin", "echo ready; cat; echo bye", long, long, Exit{}, "bye\n"},
		{"ends with stdin and a status", "echo ready; cat; exit 9", long, long, Exit{Code: 9}, ""},
		{"ends by SIGTERM", "echo ready; exec sleep 1000", -1, long, Exit{Code: -1, Signal: syscall.SIGTERM}, ""},
		{"handles SIGTERM", "trap 'echo bye; exit 7' TERM; echo ready; " + readForever, -1, long, Exit{Code: 7}, "bye\n"},
		{"ignores SIGTERM", ignoring, -1, 10 * time.Millisecond, Exit{Code: -1, Signal: syscall.SIGKILL}, ""},
		{"no grace", ignoring, -1, -1, Exit{Code: -1, Signal: syscall.SIGKILL}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := sh(tt.script)
			o.Grace, o.TermGrace = tt.grace, tt.termGrace
			p := start(t, o)
			r := lines(p)
			expect(t, r, "ready")
			exit := p.Stop(t.Context())
			exit.Leftover = false // the sleep may end a moment after the shell
			if exit != tt.want {
				t.Errorf("Stop() = %+v, want %+v", exit, tt.want)
			}
			if rest := readAll(t, r); rest != tt.rest {
				t.Errorf("the process then wrote %q, want %q", rest, tt.rest)
			}
		})
	}
}

func TestStopWithoutTime(t *testing.T) {
	p := start(t, sh("trap '' TERM; echo ready; sleep 1000"))
	expect(t, lines(p), "ready")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if exit := p.Stop(ctx); exit.Signal != syscall.SIGKILL {
		t.Errorf("Stop() = %+v", exit)
	}
}

// The ladder ends a process also if the Close of its stdin waits, as on Windows for a Write.
func TestStopWhileCloseWaits(t *testing.T) {
	o := sh("trap '' TERM; echo ready; sleep 1000")
	o.Grace, o.TermGrace = -1, -1
	p := start(t, o)
	expect(t, lines(p), "ready")
	conn, err := p.Stdin().SyscallConn()
	check(t, err)
	used, released := make(chan struct{}), make(chan error)
	go func() {
		released <- conn.Control(func(uintptr) { // a Close waits for its end
			close(used)
			<-p.Done()
		})
	}()
	<-used
	if exit := p.Stop(t.Context()); exit.Signal != syscall.SIGKILL {
		t.Errorf("Stop() = %+v", exit)
	}
	check(t, <-released)
}

func TestConcurrentStop(t *testing.T) {
	o := sh("trap '' TERM; echo ready; sleep 1000")
	o.Grace, o.TermGrace = -1, 20*time.Millisecond
	p := start(t, o)
	expect(t, lines(p), "ready")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if exit := p.Stop(t.Context()); exit.Status() != 137 {
				t.Errorf("Stop() = %+v", exit)
			}
		})
	}
	wg.Wait()
}

func TestStartContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Start(ctx, sh("exec cat"))
	check(t, err)
	cancel()
	if exit := p.Wait(); exit != (Exit{}) {
		t.Errorf("Wait() = %+v", exit)
	}
	p.Stdout().Close()
	if _, err := Start(ctx, sh("true")); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with an ended context: %v", err)
	}
}

func TestSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			p := start(t, sh("for s in TERM INT HUP; do trap \"echo $s; exit 4\" $s; done; echo ready; "+readForever))
			r := lines(p)
			expect(t, r, "ready")
			p.Signal(sig)
			expect(t, r, strings.TrimPrefix(signalName(sig), "SIG"))
			if exit := p.Wait(); exit.Status() != 4 {
				t.Errorf("Wait() = %+v", exit)
			}
		})
	}
}

// For a server that ignores the signal, the ladder continues.
func TestSignalIgnored(t *testing.T) {
	o := sh("trap '' TERM; echo ready; sleep 1000")
	o.Grace, o.TermGrace = 10*time.Millisecond, 10*time.Millisecond
	p := start(t, o)
	expect(t, lines(p), "ready")
	p.Signal(syscall.SIGTERM)
	if exit := p.Wait(); exit.Signal != syscall.SIGKILL {
		t.Errorf("Wait() = %+v", exit)
	}
}

func TestSecondSignalKills(t *testing.T) {
	p := start(t, sh("trap 'echo got it' TERM; echo ready; "+readForever))
	r := lines(p)
	expect(t, r, "ready")
	p.Signal(syscall.SIGTERM)
	expect(t, r, "got it")
	p.Signal(syscall.SIGINT)
	if exit := p.Wait(); exit.Signal != syscall.SIGKILL {
		t.Errorf("Wait() = %+v", exit)
	}
	p.Signal(syscall.SIGTERM) // does nothing after the end
}

// With a launcher, Ctrl-C arrives twice, from the terminal and from the launcher. The server
// still gets its grace.
func TestRepeatedSignal(t *testing.T) {
	p := start(t, sh("trap 'echo got it; read line; exit 4' INT; echo ready; "+readForever))
	r := lines(p)
	expect(t, r, "ready")
	p.Signal(syscall.SIGINT)
	p.signal.Load().at = time.Now().Add(time.Hour) // on a slow machine too, the next signal counts as an echo
	p.Signal(syscall.SIGINT)
	expect(t, r, "got it")
	if exit := p.Wait(); exit.Status() != 4 {
		t.Errorf("Wait() = %+v", exit)
	}
}

// Stop returns even if the process is blocked in the kernel. This test simulates that with a
// process that was never started, so nobody reaps it.
func TestStuckProcess(t *testing.T) {
	t.Parallel()
	pipes, err := openPipes()
	check(t, err)
	defer pipes.closeTheirs()
	p := newProcess(Options{Grace: -1, TermGrace: -1}, "", pipes)
	p.group.ended = true
	go p.stderr.read()
	if exit := p.Stop(t.Context()); exit != (Exit{Code: -1}) {
		t.Errorf("Stop() = %+v", exit)
	}
	if out := readAll(t, p.Stdout()); out != "" {
		t.Errorf("stdout %q", out)
	}
}

// A duration of zero is the default, and a negative one is none.
func TestDefaults(t *testing.T) {
	o := Options{}.withDefaults()
	if o.Grace != defaultGrace || o.TermGrace != defaultTermGrace || o.Drain != defaultDrain {
		t.Errorf("the defaults are %v, %v and %v", o.Grace, o.TermGrace, o.Drain)
	}
	o = Options{Grace: -1, TermGrace: -1, Drain: -1}.withDefaults()
	if o.Grace != 0 || o.TermGrace != 0 || o.Drain != 0 {
		t.Errorf("negative durations are %v, %v and %v", o.Grace, o.TermGrace, o.Drain)
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // the one that a relative PATH would name
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	plain := file("plain", "hello\n", 0o644)
	script := file("script", "#!/bin/sh\nexit 0\n", 0o644)
	noInterpreter := file("nointerpreter", "#! /no/such/interpreter -x\n", 0o755)
	windowsLines := file("windowslines", "#!/bin/sh\r\n", 0o755)
	garbage := file("garbage", "\x01\x02", 0o755)
	pipe := filepath.Join(dir, "pipe")
	check(t, syscall.Mkfifo(pipe, 0o644))
	busy := file("busy", "#!/bin/sh\n", 0o755)
	writer, err := os.OpenFile(busy, os.O_WRONLY, 0)
	check(t, err)
	defer writer.Close()

	for _, tt := range []struct {
		name   string
		o      Options
		errno  error
		status int
		texts  []string
	}{
		{"no command", Options{}, nil, 127, []string{`""`, "name the program"}},
		{"empty name", Options{Argv: []string{""}}, nil, 127, []string{"name the program"}},
		{"not in PATH", Options{Argv: []string{"nosuch"}, Env: []string{"PATH=/bin:" + dir}}, syscall.ENOENT, 127,
			[]string{`"nosuch"`, "/bin:" + dir, "install it"}},
		{"command line in one argument", Options{Argv: []string{"npx -y server"}, Env: []string{"PATH=/bin"}}, syscall.ENOENT, 127,
			[]string{"as a separate argument"}},
		{"no PATH", Options{Argv: []string{"sh"}}, syscall.ENOENT, 127, []string{"PATH is empty"}},
		{"in PATH, not executable", Options{Argv: []string{"plain"}, Env: []string{"PATH=" + dir}}, syscall.EACCES, 126,
			[]string{plain, "permission denied", "chmod"}},
		{"relative PATH", Options{Argv: []string{"garbage"}, Dir: dir, Env: []string{"PATH=.:"}}, syscall.ENOENT, 127,
			[]string{"no such program in PATH"}},
		{"no such file", Options{Argv: []string{dir + "/nosuch"}}, syscall.ENOENT, 127,
			[]string{dir + "/nosuch", "no such file", "correct the path"}},
		{"relative to the directory", Options{Argv: []string{"./nosuch"}, Dir: dir}, syscall.ENOENT, 127,
			[]string{dir + "/nosuch"}},
		{"not executable", Options{Argv: []string{plain}}, syscall.EACCES, 126, []string{"permission denied", "chmod +x"}},
		{"script not executable", Options{Argv: []string{script}}, syscall.EACCES, 126, []string{"chmod +x", "/bin/sh"}},
		{"a directory", Options{Argv: []string{dir}}, syscall.EACCES, 126, []string{"is a directory"}},
		{"a pipe", Options{Argv: []string{pipe}}, syscall.EACCES, 126, []string{"permission denied", "chmod +x"}},
		{"interpreter does not exist", Options{Argv: []string{noInterpreter}}, syscall.ENOENT, 127, []string{`"/no/such/interpreter"`}},
		{"interpreter with a carriage return", Options{Argv: []string{windowsLines}}, syscall.ENOENT, 127, []string{`"/bin/sh\r"`}},
		{"unknown format", Options{Argv: []string{garbage}}, syscall.ENOEXEC, 126, []string{"exec format error", "#! line"}},
		{"busy", Options{Argv: []string{busy}}, syscall.ETXTBSY, 126, []string{"text file busy", "try again"}},
		{"not a directory", Options{Argv: []string{plain + "/x"}}, syscall.ENOTDIR, 126, []string{"not a directory"}},
		{"NUL", Options{Argv: []string{"/bin/sh", "a\x00b"}}, syscall.EINVAL, 126, []string{"NUL byte"}},
		{"too long", Options{Argv: []string{"/bin/sh", strings.Repeat("x", 1<<20)}}, syscall.E2BIG, 126, []string{"too large"}},
		{"no such Dir", Options{Argv: []string{"/bin/sh"}, Dir: dir + "/gone"}, syscall.ENOENT, 127,
			[]string{"working directory", dir + "/gone", "create it"}},
		{"Dir is a file", Options{Argv: []string{"/bin/sh"}, Dir: plain}, syscall.ENOTDIR, 126,
			[]string{"working directory", "not a directory"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Start(t.Context(), tt.o)
			var e *StartError
			if !errors.As(err, &e) {
				t.Fatalf("Start: %v", err)
			}
			t.Log(e)
			if tt.errno != nil && !errors.Is(err, tt.errno) {
				t.Errorf("cause %v, want %v", e.Err, tt.errno)
			}
			if e.Status() != tt.status {
				t.Errorf("status %d, want %d", e.Status(), tt.status)
			}
			for _, text := range tt.texts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not contain %q", err, text)
				}
			}
		})
	}
}

// Find returns the error that Start would return for a file that does not exist or may not be run.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	plain, program := filepath.Join(dir, "plain"), filepath.Join(dir, "program")
	for file, mode := range map[string]os.FileMode{plain: 0o600, program: 0o700} {
		check(t, os.WriteFile(file, []byte("#!/bin/sh\n"), mode))
	}
	path := []string{"PATH=" + dir}
	for _, tt := range []struct {
		o    Options
		want string // "" for the error of Start
	}{
		{Options{Argv: []string{program}}, program},
		{Options{Argv: []string{"./program"}, Dir: dir}, "./program"},
		{Options{Argv: []string{"program"}, Env: path}, program},
		{Options{Argv: []string{"nosuch"}, Env: path}, ""},
		{Options{Argv: []string{dir + "/nosuch"}}, ""},
		{Options{Argv: []string{"./nosuch"}, Dir: dir}, ""},
		{Options{Argv: []string{plain}}, ""},
		{Options{Argv: []string{dir}}, ""},
		{Options{Argv: []string{plain + "/x"}}, ""},
	} {
		got, err := Find(tt.o)
		if tt.want != "" {
			if got != tt.want || err != nil {
				t.Errorf("Find(%q) = %q, %v, want %q", tt.o.Argv, got, err, tt.want)
			}
			continue
		}
		_, want := Start(t.Context(), tt.o)
		if want == nil || err == nil || err.Error() != want.Error() {
			t.Errorf("Find(%q) = %q, %v, want the error of Start, %v", tt.o.Argv, got, err, want)
		}
	}
}

// The PATH in Options.Env is searched, not that of this process.
func TestPathFromEnv(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	check(t, os.Mkdir(filepath.Join(first, "tool"), 0o755))
	check(t, os.WriteFile(filepath.Join(second, "tool"), []byte("#!/bin/sh\necho $0\n"), 0o755))
	p := start(t, Options{Argv: []string{"tool"}, Env: []string{"PATH=" + first + ":" + second}})
	if got, want := readAll(t, p.Stdout()), filepath.Join(second, "tool")+"\n"; got != want {
		t.Errorf("started %q, want %q", got, want)
	}
}

// BenchmarkStart compares Start and Wait with os/exec.
func BenchmarkStart(b *testing.B) {
	b.Run("child", func(b *testing.B) {
		for b.Loop() {
			p, err := Start(b.Context(), Options{Argv: []string{"/bin/true"}})
			check(b, err)
			io.Copy(io.Discard, p.Stdout())
			p.Wait()
		}
	})
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			cmd := exec.Command("/bin/true")
			cmd.Env = []string{}
			cmd.Stdin = strings.NewReader("")
			cmd.Stdout, cmd.Stderr = new(strings.Builder), new(strings.Builder)
			check(b, cmd.Run())
		}
	})
}
