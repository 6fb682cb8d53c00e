package soak

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// modernVersion is the protocol version without a handshake.
const modernVersion = "2026-07-28"

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
)

// message has the members of a frame that the server and the clients read.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		URI       string `json:"uri"`
		Arguments struct {
			Key    string `json:"key"`
			Size   int    `json:"size"`
			Millis int    `json:"millis"`
		} `json:"arguments"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// The tools of the server. Each writes its key to the ledger. Each but stuck answers with its key,
// its process id and a text of size bytes.
const (
	toolCount = "count"
	toolSlow  = "slow"  // answers after a while
	toolStuck = "stuck" // never answers
)

func filler(size int) string {
	const piece = "plain words, over and over again; "
	return strings.Repeat(piece, size/len(piece)+1)[:size]
}

// A server answers the clients of the soak. It writes the keys of executed calls to the ledger,
// one a line.
type server struct {
	ledger *os.File
}

// answer returns the answer to a request, nil if there is none. It returns at the latest when done is closed.
func (s *server) answer(m *message, done <-chan struct{}) []byte {
	const frame = `{"jsonrpc":"2.0","id":%s,"result":%s}` + "\n"
	a := m.Params.Arguments
	switch m.Method {
	case "initialize":
		return fmt.Appendf(nil, frame, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"soak","version":"1"}}`)
	case "tools/list":
		return fmt.Appendf(nil, frame, m.ID, `{"resultType":"complete","tools":[{"name":"count","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}},{"name":"stuck","inputSchema":{"type":"object"}}]}`)
	case "resources/read":
		return fmt.Appendf(nil, frame, m.ID, fmt.Sprintf(`{"resultType":"complete","contents":[{"uri":%q,"text":"%s %d "}]}`, m.Params.URI, strings.TrimPrefix(m.Params.URI, scheme), os.Getpid()))
	case "tools/call":
	default:
		return fmt.Appendf(nil, frame, m.ID, "{}")
	}
	if _, err := s.ledger.WriteString(a.Key + "\n"); err != nil {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%q}}`+"\n", m.ID, err)
	}
	switch m.Params.Name {
	case toolStuck:
		<-done
		return nil
	case toolSlow:
		select {
		case <-time.After(time.Duration(a.Millis) * time.Millisecond):
		case <-done:
			return nil
		}
	}
	return fmt.Appendf(nil, frame, m.ID, fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":"%s %d %s"}]}`, a.Key, os.Getpid(), filler(a.Size)))
}

// scheme is the beginning of the URI of a resource, before its key.
const scheme = "soak://"

// The arguments with which this program is started again as a server: see [Serve].
const (
	Stdio = "bench:soak"
	HTTP  = "bench:soak-http"
)

// Serve runs a server of the soak. args are the arguments of the program, the first [Stdio] or [HTTP].
func Serve(args []string, in io.Reader, out io.Writer) error {
	f, err := os.OpenFile(args[len(args)-1], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	switch s := (&server{f}); {
	case args[0] == Stdio && len(args) == 2:
		return s.serve(in, out)
	case args[0] == HTTP && len(args) == 3:
		return s.serveHTTP(args[1])
	}
	return errors.New("attache-bench starts this mode: give it flags instead")
}

// serve serves on stdio. It returns when stdin ends.
func (s *server) serve(in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	var waiting sync.WaitGroup
	done := make(chan struct{})
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			close(done)
			waiting.Wait()
			return nil
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("the frame %.100q cannot be read: %w", line, err)
		}
		if m.ID == nil || m.Method == "" {
			continue
		}
		reply := func() {
			b := s.answer(&m, done)
			mu.Lock()
			defer mu.Unlock()
			_, _ = out.Write(b)
		}
		if m.Method == "tools/call" && m.Params.Name != toolCount {
			waiting.Go(reply)
		} else {
			reply()
		}
	}
}

// serveHTTP serves over Streamable HTTP. Its sessions are only in memory, so it loses them
// when it is killed.
func (s *server) serveHTTP(address string) error {
	var sessions sync.Map
	handle := func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(sessionHeader)
		_, known := sessions.Load(id)
		if r.Method == http.MethodDelete {
			sessions.Delete(id)
			return
		}
		var m message
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		switch {
		case m.Method == "initialize":
			id = rand.Text()
			sessions.Store(id, nil)
			w.Header().Set(sessionHeader, id)
		case r.Header.Get(versionHeader) != modernVersion && !known:
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		b := s.answer(&m, r.Context().Done())
		if len(b)%2 == 0 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(b)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n", b)
	}
	h := &http.Server{Addr: address, Handler: http.HandlerFunc(handle), ReadHeaderTimeout: time.Minute}
	if err := h.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
