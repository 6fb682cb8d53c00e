package logging

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/config"
)

func TestStderrSinkWritesInOrder(t *testing.T) {
	var out bytes.Buffer
	s := NewSink(&out)
	for i := range 3 {
		fmt.Fprintln(s, i)
	}
	s.Close()
	s.Close()
	fmt.Fprintln(s, "too late")
	if got := out.String(); got != "0\n1\n2\n" {
		t.Errorf("wrote %q", got)
	}
}

// The last line is not lost if stderr takes its time. If nobody reads stderr, Close returns nevertheless.
func TestStderrSinkWaitsAtTheEnd(t *testing.T) {
	for takes, want := range map[time.Duration]bool{sinkPatience - sinkStep: true, time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			out := &gate{open: make(chan struct{})}
			time.AfterFunc(takes, func() { close(out.open) })
			s := NewSink(out)
			fmt.Fprintln(s, "the reason")
			began, written := time.Now(), false
			s.Close()
			took := time.Since(began)
			select {
			case <-s.done:
				written = true
			default:
			}
			if <-s.done; written != want || took > sinkPatience || out.String() != "the reason\n" {
				t.Errorf("stderr takes %v: Close took %v; the line %q was written before it returned: %v", takes, took, out.String(), written)
			}
		})
	}
}

// A gate is a writer that blocks until it is open.
type gate struct {
	open  chan struct{}
	wrote chan struct{} // after each line, if not nil
	bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	<-g.open
	n, err := g.Buffer.Write(b)
	if g.wrote != nil {
		g.wrote <- struct{}{}
	}
	return n, err
}

// The sink keeps the lines of a front whose 3,000 sessions end at the same time.
func TestStderrSinkKeepsABurst(t *testing.T) {
	const lines = 3000
	out := &gate{open: make(chan struct{})}
	s := NewSink(out)
	for i := range lines {
		fmt.Fprintf(s, "%d a session that nobody used was ended, and the line says whose it was and which server it had\n", i)
	}
	close(out.open)
	s.Close()
	<-s.done
	if got := strings.Count(out.String(), "\n"); got != lines {
		t.Errorf("%d lines came through of %d", got, lines)
	}
}

// Writing more than fits to a stderr that is not read for a while does not block. The log reports the
// number of lines that were dropped, in its own format and before the end.
func TestStderrSinkNeverBlocks(t *testing.T) {
	out := &gate{open: make(chan struct{}), wrote: make(chan struct{})}
	s := NewSink(out)
	settings := &config.Settings{}
	settings.Log.Format, settings.Log.Level = "json", "info"
	log := New(cli.Process{Stderr: out}, settings, s)
	long := strings.Repeat("x", sinkBytes/4)
	for range 10 {
		log.Info(long)
	}
	close(out.open)
	for range 4 {
		<-out.wrote
	}
	s.Close()
	var came, lost int
	for line := range strings.Lines(out.String()) {
		var l struct {
			Msg   string
			Lines int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%.80s: %v", line, err)
		}
		if lost += l.Lines; l.Msg == long {
			came++
		}
	}
	if came != 3 || lost != 7 {
		t.Errorf("%d lines came, and %d were reported as dropped", came, lost)
	}
}
