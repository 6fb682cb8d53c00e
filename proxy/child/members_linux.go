package child

import (
	"bytes"
	"os"
	"strconv"
)

// anyRuns reports whether a process of the group runs, and not only zombies. For
// kill(2) a zombie is a member too, and in a container whose first process does not
// reap orphans, zombies stay for ever. anyRuns reads all of /proc, so call it only
// if kill(2) reports that the group is not empty.
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

// stat returns the state and the process group of a process, both empty if it is
// gone. In /proc/PID/stat they are the first and the third field after the name of
// the command, which is in brackets and may contain any byte, also brackets.
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
