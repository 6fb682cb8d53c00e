package clientprocess

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// began returns when a process began, in ticks since the machine did, and which start of
// the machine that was.
func began(id int) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return "", err
	}
	// The second field is the name in parentheses, which may hold anything. The time is the
	// 22nd (proc_pid_stat(5)).
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", errors.New("/proc has an unknown form")
	}
	return fmt.Sprintf("%s %s", fields[19], bytes.TrimSpace(boot)), nil
}
