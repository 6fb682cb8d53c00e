//go:build unix

package child

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestUpstream(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ script, want string }{
		{"read a; echo $a", "<nil>"},
		{"read a; echo $a; echo no key >&2; exit 3", "exit status 3; its last words on stderr:\nno key"},
		{"read a; echo $a; echo key s3cret >&2; exit 3", "exit status 3; its last words on stderr:\nkey [hidden]"},
		{"read a; echo $a; exit 4", "exit status 4"},
		{"read a; echo $a; echo a warning >&2", "exit status 0; its last words on stderr:\na warning"},
		{"read a; echo $a; exec sleep 100", "signal SIGTERM"},
	} {
		o := sh(test.script)
		o.Grace = 0
		o.Hide = func(text string) string { return strings.ReplaceAll(text, "s3cret", "[hidden]") }
		p, err := Start(context.Background(), o)
		check(t, err)
		u := p.Upstream()
		if _, err := io.WriteString(u.Stdin(), "hello\n"); err != nil {
			t.Error(err)
		}
		line := make([]byte, 6)
		if _, err := io.ReadFull(u.Stdout(), line); err != nil || string(line) != "hello\n" {
			t.Errorf("%s: read %q, %v", test.script, line, err)
		}
		u.Stop()
		if got := fmt.Sprint(u.Wait()); got != test.want {
			t.Errorf("%s: %q; want %q", test.script, got, test.want)
		}
	}
}
