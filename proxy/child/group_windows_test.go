package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

// roleEnv is a variable that makes the test binary play a role in one of its own tests.
const roleEnv = "ATTACHE_CHILD_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "arguments": // prints its arguments
		_ = json.NewEncoder(os.Stdout).Encode(os.Args[1:])
	case "exit":
		code := 0
		fmt.Sscan(os.Args[1], &code)
		os.Exit(code)
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "path":
		fmt.Print(os.Getenv("PATH"))
	case "sleeper":
		time.Sleep(time.Hour)
	case "launcher": // starts another process at once and does not wait for it
		fmt.Println(launch("sleeper"))
		fmt.Println(os.Getpid())
		if os.Args[1] == "stays" {
			time.Sleep(time.Hour)
		}
	case "wrapper": // plays attache
		p, err := Start(context.Background(), role("launcher", "stays"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if err := p.GuardErr(); err != nil {
			fmt.Println(err)
		}
		_, _ = io.Copy(os.Stdout, p.Stdout())
	default:
		os.Exit(m.Run())
	}
}

// role returns the options of a process that plays a role. Its graces are long.
func role(name string, args ...string) Options {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, roleEnv+"=") })
	return Options{
		Argv:  append([]string{os.Args[0]}, args...),
		Env:   append(env, roleEnv+"="+name),
		Grace: time.Minute,
	}
}

// launch starts a process and does not wait for it.
func launch(name string) (pid int) {
	o := role(name)
	cmd := exec.Command(o.Argv[0])
	cmd.Env = o.Env
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 0
	}
	return cmd.Process.Pid
}

// watchAll reads the ids of two processes and opens the processes. While a process is open, its id
// is not reused.
func watchAll(t *testing.T, r io.Reader) (all []windows.Handle) {
	t.Helper()
	lines := bufio.NewReader(r)
	for range 2 {
		line, err := lines.ReadString('\n')
		check(t, err)
		var pid uint32
		if _, err := fmt.Sscan(line, &pid); err != nil {
			t.Fatalf("no process id: %q", line)
		}
		h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, pid)
		if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
			continue // the process has ended
		} else if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = windows.CloseHandle(h) })
		all = append(all, h)
	}
	return all
}

func expectEnded(t *testing.T, all []windows.Handle) {
	t.Helper()
	for i, h := range all {
		if event, err := windows.WaitForSingleObject(h, 5000); event != windows.WAIT_OBJECT_0 {
			t.Errorf("process %d still runs: %v", i, err)
		}
	}
}

func TestExit(t *testing.T) {
	for _, tt := range []struct{ code, text string }{
		{"0", "exit status 0"},
		{"3", "exit status 3"},
		{"3221225477", "exit status 0xc0000005"},
	} {
		p := start(t, role("exit", tt.code))
		if _, err := io.ReadAll(p.Stdout()); err != nil {
			t.Error(err)
		}
		exit := p.Wait()
		if exit.String() != tt.text || fmt.Sprint(exit.Status()) != tt.code {
			t.Errorf("%v, status %d; want %s", exit, exit.Status(), tt.text)
		}
	}
}

func TestEndsWithItsStdin(t *testing.T) {
	p := start(t, role("cat"))
	fmt.Fprintln(p.Stdin(), "one")
	if line, err := bufio.NewReader(p.Stdout()).ReadString('\n'); line != "one\n" {
		t.Errorf("%q, %v", line, err)
	}
	if exit := p.Stop(t.Context()); exit != (Exit{}) {
		t.Errorf("%+v", exit)
	}
}

// Closing this end of a pipe unblocks a read and a write.
func TestCloseUnblocksReadAndWrite(t *testing.T) {
	p := start(t, role("sleeper"))
	failed := make(chan error, 2)
	go func() {
		_, err := p.Stdin().Write(make([]byte, 1<<20))
		failed <- err
	}()
	go func() {
		_, err := p.Stdout().Read(make([]byte, 1))
		failed <- err
	}()
	// The data is more than a pipe holds, and there is nothing to read: both block or are about to.
	p.CloseStdin()
	p.Stdout().Close()
	for range 2 {
		if err := <-failed; err == nil {
			t.Error("a blocked read or write returned no error")
		}
	}
}

func TestNothingLeftAfterStop(t *testing.T) {
	o := role("launcher", "stays")
	o.Grace = time.Millisecond
	p := start(t, o)
	if err := p.GuardErr(); err != nil {
		t.Errorf("the process is in no job: %v", err)
	}
	all := watchAll(t, p.Stdout())
	if exit, want := p.Stop(t.Context()), (Exit{Code: killedStatus}); exit != want {
		t.Errorf("%+v, want %+v", exit, want)
	}
	expectEnded(t, all)
}

// A process that the first process starts immediately is in the job too. It ends with the job when
// the first process has ended.
func TestNothingLeftAfterTheProcess(t *testing.T) {
	for range 10 {
		p := start(t, role("launcher", "leaves"))
		all := watchAll(t, p.Stdout())
		p.Wait()
		expectEnded(t, all)
	}
}

// However this process ends, all processes that it started end too.
func TestNothingLeftAfterUs(t *testing.T) {
	o := role("wrapper")
	cmd := exec.Command(o.Argv[0])
	cmd.Env = o.Env
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	all := watchAll(t, out)
	if err := cmd.Process.Kill(); err != nil { // TerminateProcess: no more code of it runs
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(all) != 2 {
		t.Errorf("%d processes were watched, want 2", len(all))
	}
	expectEnded(t, all)
}

func TestEnvironmentAndDirectory(t *testing.T) {
	o := role("arguments")
	o.Dir = t.TempDir()
	o.Argv[0] = `.\it`
	copyTo(t, filepath.Join(o.Dir, "it.exe"))
	p := start(t, o)
	if p.Path() != filepath.Join(o.Dir, "it.exe") {
		t.Errorf("started %s", p.Path())
	}
	if b, err := io.ReadAll(p.Stdout()); string(b) != "[]\n" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if block, err := environmentBlock(nil); err != nil || !slices.Equal(block, []uint16{0, 0}) {
		t.Errorf("no environment: %v, %v", block, err)
	}
	if _, err := environmentBlock([]string{"A=\x00"}); err == nil {
		t.Error("a NUL was accepted")
	}
}

// A variable that is set again in another case replaces the inherited one.
func TestVariableSetAgain(t *testing.T) {
	o := role("path")
	o.Env = append(append([]string{"Path=C:\\old"}, o.Env...), "pATH=C:\\new")
	if b, err := io.ReadAll(start(t, o).Stdout()); string(b) != `C:\new` || err != nil {
		t.Errorf("PATH is %q, %v", b, err)
	}
}

// copyTo copies the test binary.
func copyTo(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(path, b, 0o700)
	}
	check(t, err)
}

// specialArguments have a special meaning in a command line or a batch file.
var specialArguments = []string{
	"plain", "", "two words", `C:\dir\`, `C:\Program Files\`, `a"b`, `\"`, `\\"x y\\`, "tab\there",
	"a&b", "a|b", "<in", ">out", "^", "(x)", "x&calc.exe", `"&calc.exe`, "!x!", "ünïcode – ✓", "a;b,c=d",
}

// inWine reports whether the test runs in Wine, whose cmd.exe does not support substrings of
// variables.
func inWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

// Every argument arrives unchanged, also through a batch file, whose command line an argument can
// neither end nor extend. Through a batch file, only programs that read "" in quotes as the C
// library does since 2008, such as Node, get the quotes. Go uses the older rule.
func TestArguments(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "npx.cmd")
	check(t, os.WriteFile(script, []byte("@echo off\r\n\""+os.Args[0]+"\" %*\r\n"), 0o700))
	for _, command := range []string{os.Args[0], script} {
		for _, arg := range append([]string{"%PATH%", "100%"}, specialArguments...) {
			t.Run(filepath.Base(command)+"/"+arg, func(t *testing.T) {
				if command == script && (strings.Contains(arg, `"`) || inWine() && strings.Contains(arg, "%")) {
					t.Skip("this program or Wine reads the argument differently")
				}
				o := role("arguments", "before", arg, "after")
				o.Argv[0] = command
				p := start(t, o)
				b, err := io.ReadAll(p.Stdout())
				check(t, err)
				var got []string
				if err := json.Unmarshal(b, &got); err != nil || !slices.Equal(got, []string{"before", arg, "after"}) {
					t.Errorf("arrived %q, %v: %s", got, err, p.Tail())
				}
			})
		}
	}
}

// A shim is found with the endings of PATHEXT, in the PATH of the process, but not in the
// working directory.
func TestFindCommand(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(t.TempDir())
	for _, file := range []string{filepath.Join(dir, "shim.cmd"), "here.cmd"} {
		check(t, os.WriteFile(file, []byte("@echo off\r\n"), 0o700))
	}
	o := Options{Env: []string{"Path=relative;" + dir}}
	for name, want := range map[string]string{
		"shim":                       filepath.Join(dir, "shim.cmd"),
		"shim.cmd":                   filepath.Join(dir, "shim.cmd"),
		"here":                       "",
		"nosuch":                     "",
		filepath.Join(dir, "shim"):   filepath.Join(dir, "shim.cmd"),
		filepath.Join(dir, "nosuch"): "",
	} {
		o.Argv = []string{name}
		got, err := Find(o)
		var failed *StartError
		if got != want || want == "" && (!errors.As(err, &failed) || failed.Status() != 127 || !errors.Is(err, fs.ErrNotExist)) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.exe")
	script := filepath.Join(dir, "script.cmd")
	for _, file := range []string{text, script} {
		check(t, os.WriteFile(file, []byte("@echo off\r\n"), 0o700))
	}
	for _, tt := range []struct {
		argv []string
		dir  string
		want string
	}{
		{[]string{""}, "", "no command was given"},
		{[]string{text}, "", "it is not a program"},
		{[]string{script, "two\nlines"}, "", "an argument with a line end"},
		{[]string{script, strings.Repeat("x", 9000)}, "", "too long for a batch file"},
		{[]string{os.Args[0]}, filepath.Join(dir, "nosuch"), "correct it or create it"},
		{[]string{os.Args[0]}, text, "it is not a directory"},
	} {
		_, err := Start(t.Context(), Options{Argv: tt.argv, Dir: tt.dir, Env: os.Environ()})
		var failed *StartError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q in %q: %v; want %s", tt.argv, tt.dir, err, tt.want)
		}
	}
}
