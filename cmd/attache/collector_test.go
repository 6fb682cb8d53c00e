package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attache-mcp/attache/middleware/trace/otlp/otlptest"
)

// A scriptCollector is the collector of one script, and the names that stand for the ids it has
// received.
type scriptCollector struct {
	*otlptest.Collector
	names map[string]string
}

type collectorKey struct{}

// collector is a command of the scripts:
//
//	collector start       starts a collector and has OTEL_EXPORTER_OTLP_ENDPOINT name it
//	collector lines FILE  writes down what it was sent
//	collector named FILE  writes FILE again
//
// In both files ids are t1, t2… for traces and s1, s2… for spans, in the order in
// which they are met, but for ids of one digit alone, which are a script's own.
func collector(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: collector start | lines FILE | named FILE")
	}
	if args[0] == "start" {
		c := &scriptCollector{otlptest.Start(), map[string]string{}}
		ts.Defer(c.Close)
		ts.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL)
		ts.Value(collectorKey{}).(*collectors).of = c
		return
	}
	c := ts.Value(collectorKey{}).(*collectors).of
	file := ts.MkAbs(args[1])
	text := strings.Join(c.Lines(), "\n") + "\n"
	if args[0] == "named" {
		b, err := os.ReadFile(file)
		ts.Check(err)
		text = string(b)
	}
	ts.Check(os.WriteFile(file, []byte(idPattern.ReplaceAllStringFunc(text, c.name)), 0o600))
}

// collectors is where a script keeps its collector.
type collectors struct{ of *scriptCollector }

var idPattern = regexp.MustCompile(`\b([0-9a-f]{32}|[0-9a-f]{16})\b`)

func (c *scriptCollector) name(id string) string {
	if strings.Trim(id, id[:1]) == "" {
		return id
	}
	if c.names[id] == "" {
		kind := "s"
		if len(id) == 32 {
			kind = "t"
		}
		n := 1
		for _, name := range c.names {
			if strings.HasPrefix(name, kind) {
				n++
			}
		}
		c.names[id] = fmt.Sprint(kind, n)
	}
	return c.names[id]
}
