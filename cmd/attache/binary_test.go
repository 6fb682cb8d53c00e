package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The linker drops methods that nothing calls, unless a reachable function looks methods up by a name made at
// run time: text/template does, and protobuf descriptors did before 1.36.12. Then it keeps all exported
// methods of all types: 6 MB more, which slow down every start. The output of the linker names the cause.
func TestLinkerDropsMethods(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it links attache")
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -dumpdep", "-o", filepath.Join(t.TempDir(), "attache"), module+"/cmd/attache")
	out, err := cmd.StderrPipe()
	check(t, err)
	check(t, cmd.Start())
	var by, said []string
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		from, to, isEdge := strings.Cut(lines.Text(), " -> ")
		switch {
		case !isEdge:
			said = append(said, lines.Text())
		case strings.HasSuffix(from, "<ReflectMethod>"):
			by = append(by, from)
		case strings.HasSuffix(to, "<ReflectMethod>"):
			by = append(by, to)
		}
	}
	if err := cmd.Wait(); err != nil || lines.Err() != nil {
		t.Fatalf("go build: %v, %v\n%s", err, lines.Err(), strings.Join(said, "\n"))
	}
	slices.Sort(by)
	if by = slices.Compact(by); len(by) > 0 {
		t.Errorf("the linker keeps all exported methods because of\n%s", strings.Join(by, "\n"))
	}
}
