package proxytest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/attache-mcp/attache/middleware"
	"github.com/attache-mcp/attache/proxy"
)

// A script is a parsed script of one session.
type script struct {
	name   string // of its section, "" if the file has none
	layers []string
	needs  middleware.Layer // has the needs that option lines define
	setup  Setup
	steps  []step
}

type step struct {
	line int // its number in the file
	verb string
	text string

	// Set for a line that is sent or expected:
	peer           string
	send, expected bool
	anyPlace       bool // it need not be the next line
	raw            []byte
}

// readScripts reads the scripts of a file. Their option lines override o.
func readScripts(file string, o proxy.Options) ([]script, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	archive := txtar.Parse(data)
	if len(archive.Files) == 0 {
		s, err := parseScript(filepath.Base(file), 1, data, o)
		return []script{s}, err
	}
	var out []script
	at := 0
	for _, f := range archive.Files {
		at += bytes.Index(data[at:], []byte("-- "+f.Name+" --"))
		first := 2 + bytes.Count(data[:at], []byte("\n"))
		s, err := parseScript(filepath.Base(file), first, f.Data, o)
		if err != nil {
			return nil, err
		}
		s.name = f.Name
		out = append(out, s)
	}
	return out, nil
}

// parseScript parses a script. first is the number of its first line in the file.
func parseScript(file string, first int, data []byte, o proxy.Options) (script, error) {
	s := script{setup: Setup{Options: o}}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed[0] == '#' {
			continue
		}
		if err := s.parseLine(line, first+i); err != nil {
			return s, fmt.Errorf("%s:%d: %w", file, first+i, err)
		}
	}
	return s, nil
}

// traffic matches a line that is sent (>), expected (<, or <~ at any position), or
// both (->).
var traffic = regexp.MustCompile(`^(client|server)(->|>|<~?)(q?)(?: (.*))?$`)

func (s *script) parseLine(line string, n int) error {
	if m := traffic.FindStringSubmatch(line); m != nil {
		return s.parseTraffic(m, n)
	}
	verb, text, _ := strings.Cut(line, " ")
	switch verb {
	case "option", "layers":
		if len(s.steps) > 0 {
			return fmt.Errorf("%s must come before all other lines", verb)
		}
		if verb == "layers" {
			s.layers = strings.Fields(text)
			return nil
		}
		return s.parseOption(text)
	case "close", "deaf", "eof":
		if text != "client" && text != "server" {
			return fmt.Errorf("%s what? client or server", verb)
		}
	case "wait":
		if _, err := time.ParseDuration(text); err != nil {
			return err
		}
	case "quiet", "exit", "cancel", "end", "note", "log", "unstartable", "restart":
	default:
		return fmt.Errorf("unknown line %q", line)
	}
	s.steps = append(s.steps, step{line: n, verb: verb, text: text})
	return nil
}

func (s *script) parseTraffic(m []string, n int) error {
	st := step{line: n, verb: m[1] + m[2], peer: m[1], send: m[2][0] != '<', expected: m[2] != ">", anyPlace: m[2] == "<~"}
	st.raw = []byte(expand(m[4]) + "\n")
	if m[3] == "q" {
		text, err := strconv.Unquote(m[4])
		if err != nil {
			return fmt.Errorf("%s is no Go string: %w", m[4], err)
		}
		st.raw = []byte(expand(text))
	}
	s.steps = append(s.steps, st)
	return nil
}

func (s *script) parseOption(text string) (err error) {
	name, value, _ := strings.Cut(text, " ")
	o := &s.setup.Options
	switch name {
	case "hold":
		o.Hold, err = strconv.Atoi(value)
	case "in_flight":
		o.InFlight, err = strconv.Atoi(value)
	case "enforce":
		s.needs.Enforces = true
	case "dry_run":
		o.DryRun = true
	case "client_reads":
		s.setup.ClientReads = true
	case "forward_noise":
		o.ForwardNoise = true
	case "restart":
		o.Restart, err = parseRestart(value)
	case "id_prefix":
		o.IDPrefix = value
	case "arguments":
		for names := range strings.SplitSeq(value, "/") {
			s.needs.ArgumentNames = append(s.needs.ArgumentNames, strings.Fields(names))
		}
	case "guarded":
		s.needs.Guarded = strings.Fields(value)
	case "start_error":
		s.setup.StartError = errors.New(value)
	default:
		err = fmt.Errorf("unknown option %q", name)
	}
	return err
}

// parseRestart parses the words of option restart.
func parseRestart(text string) (*proxy.Restart, error) {
	r := &proxy.Restart{Name: "scripted"}
	for word := range strings.FieldsSeq(text) {
		var err error
		switch key, value, _ := strings.Cut(word, "="); key {
		case "notice":
			r.Notice = true
		case "resumed":
			r.Resumed = true
		case "hold":
			r.Hold, err = time.ParseDuration(value)
		case "hang":
			r.Hang, err = time.ParseDuration(value)
		case "retry":
			r.Retry = func(tool string) bool { return tool == value }
		default:
			err = fmt.Errorf("unknown word %q", word)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}
