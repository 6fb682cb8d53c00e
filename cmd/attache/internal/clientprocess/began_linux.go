package clientprocess

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// began returns the start time of a process, in ticks since the system booted, with the id of that boot.
func began(id int) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	if err != nil {
		return "", err
	}
	// The second field is the program's name in parentheses, which may contain any character. The start
	// time is the 22nd field (proc_pid_stat(5)).
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", errors.New("/proc has an unknown format")
	}
	return fmt.Sprintf("%s %s", fields[19], bytes.TrimSpace(boot)), nil
}
