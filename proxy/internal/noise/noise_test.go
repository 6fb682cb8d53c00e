package noise

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// The first lines are logged, the last of them with a note, and a count is logged if there were more.
func TestCounter(t *testing.T) {
	for _, test := range []struct{ lines, logged, notes, counts int }{
		{0, 0, 0, 0}, {1, 1, 0, 0}, {maxLogged - 1, maxLogged - 1, 0, 0}, {maxLogged, maxLogged, 1, 0}, {maxLogged + 1, maxLogged, 1, 1},
	} {
		var log bytes.Buffer
		c := Counter{Log: slog.New(slog.NewTextHandler(&log, nil))}
		for range test.lines {
			c.Add([]byte("loading\n"))
			c.Add([]byte(" \t\x1b\r\n"))
		}
		c.Report()
		text := log.String()
		logged, notes := strings.Count(text, "loading"), strings.Count(text, "further lines are counted")
		counts := strings.Count(text, fmt.Sprintf("count=%d", test.lines))
		if logged != test.logged || notes != test.notes || counts != test.counts {
			t.Errorf("%d lines:\n%s", test.lines, text)
		}
	}
}

// A long line is logged up to a limit.
func TestLongLine(t *testing.T) {
	for n, want := range map[int]int{199: 199, 200: 200, 201: 200} {
		var log bytes.Buffer
		c := Counter{Log: slog.New(slog.NewTextHandler(&log, nil))}
		c.Add(bytes.Repeat([]byte{'Q'}, n))
		if got := strings.Count(log.String(), "Q"); got != want {
			t.Errorf("%d bytes of %d are logged", got, n)
		}
	}
}
