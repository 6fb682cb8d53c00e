package chain

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder returns who holds the lock of a file, as far as the kernel knows.
func holder(f *os.File) string {
	pid := lockPID(f)
	if pid == "" {
		return somebody
	}
	name, _ := os.ReadFile("/proc/" + pid + "/comm")
	return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(name)))
}

// lockPID returns the id of the process that holds a lock of the file, "" if it is not
// known: the holder may be in another container. A line of /proc/locks reads
// "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF" (proc_locks(5)).
func lockPID(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer locks.Close()
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 6 && fields[1] == "FLOCK" && fields[5] == file && !strings.HasPrefix(fields[4], "-") && fields[4] != "0" {
			return fields[4]
		}
	}
	return ""
}
