package session

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/assembly"
	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
	"github.com/attache-mcp/attache/proxy"
	"github.com/attache-mcp/attache/proxy/record"
)

// recordEnd is how long a session waits for the disk at its end.
const recordEnd = 2 * time.Second

// A recording writes a session to a file.
type recording struct {
	*record.Recorder
	file *os.File
	log  *slog.Logger
}

// startRecording starts to record a session to a file. It never overwrites a file, but uses the next
// free name: a client may start a server twice with the same configuration, to probe it or in two
// windows.
func startRecording(p cli.Process, s *config.Settings, idPrefix string, secrets []string, log *slog.Logger) (*recording, error) {
	f, err := createRecording(s.Record)
	if err != nil {
		return nil, fmt.Errorf("the session cannot be recorded: %w: name another file with --record, or leave it out", err)
	}
	if f.Name() != s.Record {
		log.Info("the recording file exists already; recording to another one", "file", f.Name())
	}
	recorder := record.NewRecorder(f, record.Options{
		IDPrefix: idPrefix,
		Server:   s.RecordedName(),
		Start:    assembly.SessionStart(p, s),
		Secrets:  config.Secrets(p, s, secrets),
		Failed: func(err error) {
			log.Warn("the recording stops; the session goes on", "file", f.Name(), "err", err)
		},
	})
	return &recording{recorder, f, log}, nil
}

// createRecording creates the file path or, if it exists, the first of path-2, path-3 and so on
// that does not. If path is not a regular file, for example a pipe, it opens it.
func createRecording(path string) (*os.File, error) {
	ext := filepath.Ext(path)
	for n := 1; ; n++ {
		name := path
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), n, ext)
		}
		f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if !errors.Is(err, fs.ErrExist) || n == 1000 {
			return f, err
		}
		if info, err := os.Stat(name); n == 1 && err == nil && !info.Mode().IsRegular() {
			return os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0) // fails at once for a pipe without a reader
		}
	}
}

// watch records a line that passes the relay.
func (r *recording) watch(at proxy.Point, line []byte) { r.Watch(at.String(), line) }

// end completes the recording. It does not wait longer than recordEnd for a disk that hangs, and
// then leaves its goroutine running.
func (r *recording) end() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Close() // Failed has reported the error
		r.closeFile()
	}()
	select {
	case <-done:
	case <-time.After(recordEnd):
		r.log.Warn("the recording could not be completed in time", "file", r.file.Name())
	}
}

// closeFile closes the file. It removes the file if the session had no messages, because some
// clients start a server only to see whether it starts.
func (r *recording) closeFile() {
	info, err := r.file.Stat()
	if closing := r.file.Close(); closing != nil {
		r.log.Warn("the recording may not be complete", "file", r.file.Name(), "err", closing)
	}
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		_ = os.Remove(r.file.Name())
	}
}
