package clientprocess

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func began(id int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", id)
	if err != nil {
		return "", err
	}
	at := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", at.Sec, at.Usec), nil
}
