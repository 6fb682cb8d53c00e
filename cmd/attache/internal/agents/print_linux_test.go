package agents

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attache-mcp/attache/cmd/attache/internal/cli"
	"github.com/attache-mcp/attache/cmd/attache/internal/term"
)

// Commands print to a term.Output in front of the terminal.
func TestLogsOnTerminal(t *testing.T) {
	dir := t.TempDir()
	p := cli.Process{StateDir: dir}
	db := openRegistry(t, dir, 0)
	_, child := createAgent(t, db, db)
	name := filepath.Join(outputDirectory(p), child.ID, fmt.Sprintf("run-%d", child.Run))
	err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name+".out", []byte("\x1b[2Jout\n"), 0o600), os.WriteFile(name+".err", []byte("\x1b[2Jerr\n"), 0o600))
	check(t, err)
	screen, program := openTerminal(t)
	p.Stdout, p.Stderr = &term.Output{To: program}, program
	check(t, PrintLogs(t.Context(), p, db, child.ID))
	want := "\ufffd[2Jout\r\n\ufffd[2Jerr\r\n"
	shown := make([]byte, len(want))
	if _, err := io.ReadFull(screen, shown); err != nil || string(shown) != want {
		t.Errorf("got %q, %v, want %q", shown, err, want)
	}
}

// openTerminal returns the two ends of a pseudo-terminal.
func openTerminal(t *testing.T) (screen, program *os.File) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("there are no pseudo-terminals: ", err)
	}
	t.Cleanup(func() { screen.Close() })
	fd := int(screen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	check(t, errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)))
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	t.Cleanup(func() { program.Close() })
	return screen, program
}
