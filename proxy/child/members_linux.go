package child

import (
	"bytes"
	"os"
	"strconv"
)

// anyRuns reports whether anybody in a process group runs, as against being
// dead and not reaped. kill(2) takes the dead for members, and in a container
// whose first process reaps no orphans they stay for ever. It reads all of
// /proc, so it is for the few moments when somebody seems to be left.
func anyRuns(pgid int) bool {
	proc, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	want := strconv.Itoa(pgid)
	for _, entry := range proc {
		if name := entry.Name(); name[0] >= '1' && name[0] <= '9' {
			state, group := stat(name)
			if group == want && state != "Z" && state != "X" {
				return true
			}
		}
	}
	return false
}

// stat returns state and process group of a process, both empty if it is gone.
// In /proc/PID/stat they are the first and the third field behind the command's
// name, which stands in brackets and may hold anything, brackets too.
func stat(pid string) (state, group string) {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", ""
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 3 {
		return "", ""
	}
	return string(f[0]), string(f[2])
}
