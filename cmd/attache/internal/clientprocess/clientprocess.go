// Package clientprocess identifies the process that started this one, the client. All servers of one
// client get the same name for it, and no others do, so the name can replace a session id if the client
// provides none.
package clientprocess

import (
	"fmt"
	"os"
)

// Name returns a unique name for the parent process: its id and its start time, because the system reuses
// ids. It returns "" if these are not known, or if the parent process has ended.
func Name() string {
	id := os.Getppid()
	if id <= 1 {
		return ""
	}
	began, err := began(id)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %s", id, began)
}
