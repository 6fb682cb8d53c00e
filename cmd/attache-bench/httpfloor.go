package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
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

// idleConns is the number of idle connections that a floor keeps: more than the calls at once.
const idleConns = 128

// This file has the floors with which proxies that speak HTTP are compared: proxies that pass
// lines and check nothing. They support only the requests of this benchmark.

// serveHTTP serves over HTTP. Each session has its own server.
func serveHTTP(args []string) error {
	if len(args) != 2 {
		return errors.New("want the address and the workspace member: attache-bench starts this mode, give it flags instead")
	}
	var mu sync.Mutex
	sessions := map[string]*server{}
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
			id = rand.Text()
			sessions[id] = &server{workspace: []byte(args[1])}
			w.Header().Set("Mcp-Session-Id", id)
		}
		sessions[id].answerHTTP(w, body, length)
	}))
}

// answerHTTP answers with JSON, or with events if notifications precede the reply.
func (s *server) answerHTTP(w http.ResponseWriter, body []byte, length int) {
	head := body[:min(len(body), edge)]
	if isNotes(head) {
		e := newEvents(w)
		s.out = bufio.NewWriterSize(e, 64*kib)
		s.flush = func() { s.out.Flush(); e.flush() }
		s.answer(body, length)
		s.flush()
		return
	}
	if size, _ := strconv.Atoi(string(scalar(head, `"size":`))); size > maxLine {
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
	open bool // a line has begun and not ended
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
		if !e.open {
			out = append(out, "data: "...)
		}
		out = append(out, line...)
		if e.open = line[len(line)-1] != '\n'; !e.open {
			out = append(out, '\n')
		}
	}
	_, err := e.w.Write(out)
	return len(b), err
}

// requestLine reads a body like readLine reads a line: it returns its bytes and its length with a line end.
func requestLine(r *http.Request) (b []byte, length int, err error) {
	if r.ContentLength < 0 {
		b, length, err = readLine(bufio.NewReaderSize(r.Body, 64*kib), new([]byte))
		if err != io.EOF {
			return b, length, err
		}
		return b, length + 1, nil
	}
	b, err = requestBody(r)
	return b, len(bytes.TrimRight(b, "\n")) + 1, err
}

// requestBody reads a body of known length.
func requestBody(r *http.Request) ([]byte, error) {
	b := make([]byte, max(r.ContentLength, 0), max(r.ContentLength, 0)+1)
	_, err := io.ReadFull(r.Body, b)
	return b, err
}

// reply sends a message as the response, or 202 without one.
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

// A bridgeSession is a session of bridge. It has its own process.
type bridgeSession struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	mu      sync.Mutex
	waiting map[string]chan []byte // requests by id
	newest  chan []byte            // of the newest request, which receives notifications
}

// bridge serves a command over HTTP, with one process for each session.
func bridge(args []string) error {
	var mu sync.Mutex
	sessions := map[string]*bridgeSession{}
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
				id = rand.Text()
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
			s.post(w, body)
		}
	}))
}

func newBridgeSession(command []string) (*bridgeSession, error) {
	s := &bridgeSession{waiting: map[string]chan []byte{}}
	var err error
	if s.cmd, s.in, s.out, err = startPiped(command); err != nil {
		return nil, err
	}
	go s.pump()
	return s, nil
}

// idOf returns the id in a line, "" if there is none.
func idOf(line []byte) string { return string(scalar(line[:min(len(line), edge)], `"id":`)) }

// post sends a message to the process and responds with its reply, and with the notifications
// before the reply.
func (s *bridgeSession) post(w http.ResponseWriter, line []byte) {
	id := idOf(line)
	lines := make(chan []byte, 16)
	s.mu.Lock()
	if id != "" {
		s.waiting[id], s.newest = lines, lines
	}
	_, err := s.in.Write(append(bytes.TrimRight(line, "\n"), '\n'))
	s.mu.Unlock()
	if id == "" || err != nil {
		reply(w, nil)
		return
	}
	b := <-lines
	if idOf(b) != "" {
		reply(w, b)
		return
	}
	e := newEvents(w)
	for ; idOf(b) == ""; b = <-lines {
		_, _ = e.Write(b)
		e.flush()
	}
	_, _ = e.Write(b)
}

// pump delivers the lines of the process to the requests that wait for them.
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
		to := s.newest
		if id != "" {
			to = s.waiting[id]
			delete(s.waiting, id)
		}
		s.mu.Unlock()
		if to != nil {
			to <- bytes.Clone(b)
		}
	}
}

// outBridge serves a server over HTTP on stdio.
func outBridge(args []string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: idleConns, DisableCompression: true}}
	var session string
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
					_, _ = os.Stdout.Write(b) // os.File writes one slice at a time
				}
			}
		}
		if b, err := io.ReadAll(resp.Body); err == nil && len(b) > 0 {
			_, _ = os.Stdout.Write(b)
		}
	}
	in := bufio.NewReaderSize(os.Stdin, 64*kib)
	var long []byte
	for {
		b, _, err := readLine(in, &long)
		if err != nil {
			return
		}
		if b = bytes.Clone(b); session == "" {
			post(b) // initialize, before the others: it returns the session
		} else {
			go post(b)
		}
	}
}

// reverse serves a server over HTTP with the reverse proxy of net/http/httputil.
func reverse(args []string) error {
	to, err := url.Parse(args[1])
	if err != nil {
		return err
	}
	to.Path = ""
	p := httputil.NewSingleHostReverseProxy(to)
	p.Transport = &http.Transport{MaxIdleConnsPerHost: idleConns, DisableCompression: true}
	return http.ListenAndServe(args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without this, an answer that begins before the transport has read the whole body closes the body.
		_ = http.NewResponseController(w).EnableFullDuplex()
		p.ServeHTTP(w, r)
	}))
}
