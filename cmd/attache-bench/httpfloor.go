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
	return http.ListenAndServe(args[0], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := requestBody(r)
		if err != nil || r.Method == http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		id := r.Header.Get("Mcp-Session-Id")
		if id == "" {
			id = strconv.Itoa(len(sessions) + 1)
			sessions[id] = &server{workspace: []byte(args[1])}
			w.Header().Set("Mcp-Session-Id", id)
		}
		var answer bytes.Buffer
		s := sessions[id]
		s.out = bufio.NewWriter(&answer)
		s.answer(body, len(bytes.TrimRight(body, "\n"))+1)
		s.out.Flush()
		reply(w, answer.Bytes())
	}))
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
	in  io.WriteCloser
	out *bufio.Reader

	mu    sync.Mutex
	waits map[string]chan []byte // by id
}

// bridge serves a command over HTTP, one process a session.
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
		if s == nil {
			if s, err = newBridgeSession(args[1:]); err == nil {
				id = strconv.Itoa(len(sessions) + 1)
				sessions[id] = s
				w.Header().Set("Mcp-Session-Id", id)
			}
		}
		mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		reply(w, s.ask(body))
	}))
}

func newBridgeSession(command []string) (*bridgeSession, error) {
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
	s := &bridgeSession{in: in, out: bufio.NewReaderSize(out, 64*kib), waits: map[string]chan []byte{}}
	go s.pump()
	return s, cmd.Start()
}

// ask sends a message and returns the answer, nil for a notification.
func (s *bridgeSession) ask(line []byte) []byte {
	id := string(scalar(line[:min(len(line), ends)], `"id":`))
	wait := make(chan []byte, 1)
	s.mu.Lock()
	if id != "" {
		s.waits[id] = wait
	}
	_, err := s.in.Write(append(bytes.TrimRight(line, "\n"), '\n'))
	s.mu.Unlock()
	if id == "" || err != nil {
		return nil
	}
	return <-wait
}

// pump takes answers to who waits for them.
func (s *bridgeSession) pump() {
	var long []byte
	for {
		b, _, err := readLine(s.out, &long)
		if err != nil {
			return
		}
		id := string(scalar(b[:min(len(b), ends)], `"id":`))
		s.mu.Lock()
		wait := s.waits[id]
		delete(s.waits, id)
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
	var mu sync.Mutex // held to write
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
		b, err := io.ReadAll(resp.Body)
		if err != nil || len(b) == 0 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.Write(b)
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
	return http.ListenAndServe(args[0], p)
}
