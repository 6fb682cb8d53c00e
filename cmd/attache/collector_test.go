package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/attache-mcp/attache/middleware/trace/otlp/otlptest"
)

// A scriptCollector is the collector of one script, with short names for the ids it has received.
type scriptCollector struct {
	*otlptest.Collector
	names map[string]string
}

type collectorKey struct{}

// collector is a script command:
//
//	collector start       starts a collector and sets OTEL_EXPORTER_OTLP_ENDPOINT to its address
//	collector lines FILE  writes what it has received to FILE
//	collector named FILE  replaces the ids in FILE
//
// In both files ids are t1, t2… for traces and s1, s2… for spans, in the order of their first
// use. Ids of only one repeated digit come from the script and stay.
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

// collectors holds the collector of a script.
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
