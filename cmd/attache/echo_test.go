package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attache-mcp/attache/cmd/attache/internal/attachetest"
	"github.com/attache-mcp/attache/proxy/wire"
)

// echoTool is the only tool of the echo server. Its arguments are facts of a session that attache may fill in.
const echoTool = `{"name":"whoami","inputSchema":{"type":"object","properties":{"workspace":{"type":"string","description":"Path of the workspace"},"user":{"type":"string"},"tenant":{"type":"string"},"session":{"type":"string"}}}}`

// echo serves the part of MCP that tests need: it answers a call of its tool with the arguments, _meta and
// given.
func echo(in io.Reader, out io.Writer, given string) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		frame := wire.Value{Raw: lines.Bytes()}
		id := frame.Get("id")
		if !id.Exists() {
			continue
		}
		result := `{}`
		switch frame.Get("method").Text() {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1"}}`
		case "tools/list":
			result = `{"tools":[` + echoTool + `]}`
		case "tools/call":
			user := frame.Get("params", "arguments", "user").Text()
			hangs := strings.HasPrefix(user, "hang-")
			if hangs {
				user = fmt.Sprintf("%s %d", user, os.Getppid())
			}
			if err := noteCall(user); err != nil {
				return err
			}
			if hangs {
				continue // no answer
			}
			text := string(frame.Get("params", "arguments").Raw) + string(frame.Get("params", "_meta").Raw) + given
			result = `{"content":[{"type":"text","text":` + string(wire.Quote(text)) + `}]}`
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id.Raw, result); err != nil {
			return err
		}
	}
	return lines.Err()
}

// noteCall appends the name of an executed call to the file ECHO_CALLS.
func noteCall(name string) error {
	path := os.Getenv("ECHO_CALLS")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(name + "\n")
	return err
}

// echoProgram is the echo server as a program for scripts. Its answers include the variables that attache and
// its hosts use.
func echoProgram() {
	var given []string
	for _, entry := range os.Environ() {
		if strings.HasPrefix(entry, "ATTACHE_") || strings.HasPrefix(entry, "MCP_") {
			given = append(given, entry)
		}
	}
	slices.Sort(given)
	if err := echo(os.Stdin, os.Stdout, " "+strings.Join(given, " ")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stepsProgram is a client for scripts: "steps FILE COMMAND [ARG...]" starts the command and executes the
// lines of the file:
//
//	> FRAME     send the request and wait for its reply; @FILE@ is replaced by the
//	            content of the file
//	>> FRAME    send the notification
//	< TEXT      check that the last reply contains TEXT
//	! TEXT      check that it does not
//	within TIME check that the last reply took no longer, or one of four repetitions
//	until TEXT  send the last request again until its reply contains TEXT
//	run COMMAND run a command until it succeeds
//	copy A B    replace B with a copy of A, readable only by the user
func stepsProgram() {
	if err := steps(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "steps:", err)
		os.Exit(1)
	}
}

// stepsLimit is how long "until" and "run" try.
const stepsLimit = 5 * time.Minute

func steps(file string, command []string) error {
	script, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c, err := startStepped(command)
	if err != nil {
		return err
	}
	for n, line := range strings.Split(strings.TrimSpace(string(script)), "\n") {
		verb, rest, _ := strings.Cut(line, " ")
		if err := c.step(verb, rest); err != nil {
			c.stdin.Close()
			_ = c.cmd.Wait()
			return fmt.Errorf("line %d: %s: %w; the reply is %s", n+1, line, err, c.reply)
		}
	}
	c.stdin.Close()
	return c.cmd.Wait()
}

// A stepProcess is the command that the steps use.
type stepProcess struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	last   string // the last request
	reply  []byte
	took   time.Duration // what the reply took
}

func startStepped(command []string) (*stepProcess, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &stepProcess{cmd: cmd, stdin: in, stdout: bufio.NewReader(out)}, cmd.Start()
}

func (c *stepProcess) step(verb, rest string) error {
	switch verb {
	case ">":
		if before, behind, ok := strings.Cut(rest, "@"); ok {
			name, after, _ := strings.Cut(behind, "@")
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			rest = before + strings.TrimSpace(string(data)) + after
		}
		c.last = rest
		return c.exchange()
	case ">>":
		_, err := io.WriteString(c.stdin, rest+"\n")
		return err
	case "<", "!":
		if bytes.Contains(c.reply, []byte(rest)) != (verb == "<") {
			return fmt.Errorf("it does not hold")
		}
		return nil
	case "within":
		limit, err := time.ParseDuration(rest)
		for try := 1; err == nil && c.took > limit && try < 5; try++ {
			err = c.exchange()
		}
		if err != nil || c.took > limit {
			return fmt.Errorf("it took %v, %v", c.took, err)
		}
		return nil
	case "until":
		for end := time.Now().Add(stepsLimit); !bytes.Contains(c.reply, []byte(rest)); {
			if time.Now().After(end) {
				return fmt.Errorf("not within %v", stepsLimit)
			}
			if err := c.exchange(); err != nil {
				return err
			}
		}
		return nil
	case "run":
		words := strings.Fields(rest)
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		for end := time.Now().Add(stepsLimit); err != nil && time.Now().Before(end); {
			time.Sleep(100 * time.Millisecond)
			out, err = exec.Command(words[0], words[1:]...).CombinedOutput()
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	case "copy":
		from, to, _ := strings.Cut(rest, " ")
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to+".new", data, 0o600); err != nil {
			return err
		}
		return os.Rename(to+".new", to)
	}
	return fmt.Errorf("unknown step")
}

// exchange sends the last request and reads the reply.
func (c *stepProcess) exchange() (err error) {
	defer func(began time.Time) { c.took = time.Since(began) }(time.Now())
	if _, err = io.WriteString(c.stdin, c.last+"\n"); err != nil {
		return err
	}
	c.reply, err = c.stdout.ReadBytes('\n')
	return err
}

// mint is a script command: "mint FILE [CLAIM=VALUE...]" writes a token of the test issuer, readable only by
// the user, and the key set beside it as jwks.json. exp is a time from now.
func mint(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: mint FILE [CLAIM=VALUE...]")
	}
	changed := map[string]any{}
	for _, arg := range args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		changed[name] = value
		if name == "exp" {
			d, err := time.ParseDuration(value)
			ts.Check(err)
			changed[name] = time.Now().Add(d).Unix()
		}
	}
	file := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(file, []byte(attachetest.Token(changed)+"\n"), 0o600))
	ts.Check(os.WriteFile(filepath.Join(filepath.Dir(file), "jwks.json"), attachetest.KeySet(), 0o600))
}
