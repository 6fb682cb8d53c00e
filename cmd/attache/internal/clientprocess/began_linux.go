package clientprocess

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// began returns the start time of a process, in ticks since the system booted, with the id of that boot and
// the PID namespace: processes of two containers may have the same id, and start in the same tick.
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
	namespace, _ := os.Readlink("/proc/self/ns/pid") // there is none if the kernel has no namespaces
	return fmt.Sprintf("%s %s %s", fields[19], bytes.TrimSpace(boot), namespace), nil
}
