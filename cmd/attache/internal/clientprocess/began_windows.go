package clientprocess

import (
	"fmt"

	"golang.org/x/sys/windows"
)

func began(id int) (string, error) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(id))
	if err != nil {
		return "", err
	}
	defer func() { _ = windows.CloseHandle(process) }()
	var began, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &began, &exited, &kernel, &user); err != nil {
		return "", err
	}
	return fmt.Sprint(began.Nanoseconds()), nil
}
