package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
)

// idleConns is how many connections a floor keeps: more than there are calls at once.
const idleConns = 128

// The floors that proxies with HTTP on a side are held against: what a proxy costs that
// passes lines and checks nothing. They answer no more than this benchmark asks.

// serveHTTP is serve over HTTP. Each session has a server of its own.
func serveHTTP(args []string) error {
	if len(args) != 2 {
		return errors.New("want the address and the workspace member: attache-bench starts this mode, give it flags instead")
	}
	var mu sync.Mutex
	sessions := map[string]*server{}
	made := 1
	return http.ListenAndServe(args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, length, err := requestLine(r)
		if err != nil || r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		id := r.Header.Get("Mcp-Session-Id")
		if r.Method == http.MethodDelete {
			delete(sessions, id)
			return
		}
		if sessions[id] == nil {
			id = strconv.Itoa(made)
			made++
			sessions[id] = &server{workspace: []byte(args[1])}
			w.Header().Set("Mcp-Session-Id", id)
		}
		sessions[id].answerHTTP(w, body, length)
	}))
}

// answerHTTP answers with JSON, or with events where something comes before the reply.
func (s *server) answerHTTP(w http.ResponseWriter, body []byte, length int) {
	if isNotes(body[:min(len(body), ends)]) {
		e := newEvents(w)
		s.out = bufio.NewWriterSize(e, 64*kib)
		s.flush = func() { s.out.Flush(); e.flush() }
		s.answer(body, length)
		s.flush()
		return
	}
	if size, _ := strconv.Atoi(string(scalar(body[:min(len(body), ends)], `"size":`))); size > kept {
		w.Header()["Content-Type"] = []string{"application/json"}
		s.out = bufio.NewWriterSize(w, 64*kib)
		s.answer(body, length)
		s.out.Flush()
		return
	}
	var answer bytes.Buffer
	s.out = bufio.NewWriter(&answer)
	s.answer(body, length)
	s.out.Flush()
	reply(w, answer.Bytes())
}

// events writes lines as events.
type events struct {
	w    http.ResponseWriter
	half bool // within a line
}

func newEvents(w http.ResponseWriter) *events {
	w.Header()["Content-Type"] = []string{"text/event-stream"}
	return &events{w: w}
}

func (e *events) flush() { _ = http.NewResponseController(e.w).Flush() }

// Write implements io.Writer.
func (e *events) Write(b []byte) (int, error) {
	var out []byte
	for line := range bytes.Lines(b) {
		if !e.half {
			out = append(out, "data: "...)
		}
		out = append(out, line...)
		if e.half = line[len(line)-1] != '\n'; !e.half {
			out = append(out, '\n')
		}
	}
	_, err := e.w.Write(out)
	return len(b), err
}

// requestLine reads a body as the line that it is on stdio, and its length, as readLine does.
func requestLine(r *http.Request) (b []byte, length int, err error) {
	if r.ContentLength < 0 {
		b, length, err = readLine(bufio.NewReaderSize(r.Body, 64*kib), new([]byte))
		if err != io.EOF {
			return b, length, err
		}
		return b, length + 1, nil // with the line end
	}
	b, err = requestBody(r)
	return b, len(bytes.TrimRight(b, "\n")) + 1, err
}

// requestBody reads a body in one piece.
func requestBody(r *http.Request) ([]byte, error) {
	b := make([]byte, max(r.ContentLength, 0), max(r.ContentLength, 0)+1)
	_, err := io.ReadFull(r.Body, b)
	return b, err
}

// reply answers with a message, or with none.
func reply(w http.ResponseWriter, message []byte) {
	if len(message) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h := w.Header()
	h["Content-Type"] = []string{"application/json"}
	h["Content-Length"] = []string{strconv.Itoa(len(message))}
	_, _ = w.Write(message)
}

// A bridgeSession is a session of bridge: a process.
type bridgeSession struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	mu    sync.Mutex
	waits map[string]chan []byte // by id
	last  chan []byte            // of the youngest request: what is no reply goes there
}

// bridge serves a command over HTTP, one process a session.
func bridge(args []string) error {
	var mu sync.Mutex
	sessions := map[string]*bridgeSession{}
	made := 1
	return http.ListenAndServe(args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := requestBody(r)
		if err != nil {
			return
		}
		id := r.Header.Get("Mcp-Session-Id")
		mu.Lock()
		s := sessions[id]
		switch {
		case s != nil && r.Method == http.MethodDelete:
			delete(sessions, id)
		case s == nil:
			if s, err = newBridgeSession(args[1:]); err == nil {
				id = strconv.Itoa(made)
				made++
				sessions[id] = s
				w.Header().Set("Mcp-Session-Id", id)
			}
		}
		mu.Unlock()
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadGateway)
		case r.Method == http.MethodDelete:
			s.in.Close()
		default:
			s.ask(w, body)
		}
	}))
}

func newBridgeSession(command []string) (*bridgeSession, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, out, err := pipes(cmd, 64*kib)
	if err != nil {
		return nil, err
	}
	s := &bridgeSession{cmd: cmd, in: in, out: out, waits: map[string]chan []byte{}}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go s.pump()
	return s, nil
}

// idOf returns the id of a line, "" if it has none.
func idOf(line []byte) string { return string(scalar(line[:min(len(line), ends)], `"id":`)) }

// ask sends a message and answers with what comes for it.
func (s *bridgeSession) ask(w http.ResponseWriter, line []byte) {
	id := idOf(line)
	wait := make(chan []byte, 16)
	s.mu.Lock()
	if id != "" {
		s.waits[id], s.last = wait, wait
	}
	_, err := s.in.Write(append(bytes.TrimRight(line, "\n"), '\n'))
	s.mu.Unlock()
	if id == "" || err != nil {
		reply(w, nil)
		return
	}
	b := <-wait
	if idOf(b) != "" {
		reply(w, b)
		return
	}
	e := newEvents(w)
	for ; idOf(b) == ""; b = <-wait {
		_, _ = e.Write(b)
		e.flush()
	}
	_, _ = e.Write(b)
}

// pump takes what the process says to who waits for it.
func (s *bridgeSession) pump() {
	var long []byte
	for {
		b, _, err := readLine(s.out, &long)
		if err != nil {
			_ = s.cmd.Wait()
			return
		}
		id := idOf(b)
		s.mu.Lock()
		wait := s.last
		if id != "" {
			wait = s.waits[id]
			delete(s.waits, id)
		}
		s.mu.Unlock()
		if wait != nil {
			wait <- bytes.Clone(b)
		}
	}
}

// outBridge is the client of a server over HTTP for who speaks on stdio.
func outBridge(args []string) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: idleConns, DisableCompression: true}}
	var session string
	var mu sync.Mutex
	say := func(line []byte) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.Write(line)
	}
	post := func(line []byte) {
		q, err := http.NewRequest(http.MethodPost, args[0], bytes.NewReader(line))
		if err != nil {
			return
		}
		q.Header["Content-Type"], q.Header["Accept"] = []string{"application/json"}, []string{"application/json, text/event-stream"}
		if session != "" {
			q.Header["Mcp-Session-Id"] = []string{session}
		}
		resp, err := client.Do(q)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		if session == "" {
			session = resp.Header.Get("Mcp-Session-Id")
		}
		if resp.Header.Get("Content-Type") == "text/event-stream" {
			for in := bufio.NewReaderSize(resp.Body, 64*kib); ; {
				b, err := in.ReadSlice('\n')
				if err != nil {
					return
				}
				if b, ok := bytes.CutPrefix(b, []byte("data: ")); ok {
					say(b)
				}
			}
		}
		if b, err := io.ReadAll(resp.Body); err == nil && len(b) > 0 {
			say(b)
		}
	}
	in := bufio.NewReaderSize(os.Stdin, 64*kib)
	var long []byte
	for {
		b, _, err := readLine(in, &long)
		if err != nil {
			return nil
		}
		if b = bytes.Clone(b); session == "" {
			post(b) // initialize, which the others need
		} else {
			go post(b)
		}
	}
}

// reverse is net/http's own proxy.
func reverse(args []string) error {
	to, err := url.Parse(args[1])
	if err != nil {
		return err
	}
	to.Path = ""
	p := httputil.NewSingleHostReverseProxy(to)
	p.Transport = &http.Transport{MaxIdleConnsPerHost: idleConns, DisableCompression: true}
	return http.ListenAndServe(args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Or an answer that begins before the transport has seen the end of the request's body closes it.
		_ = http.NewResponseController(w).EnableFullDuplex()
		p.ServeHTTP(w, r)
	}))
}
