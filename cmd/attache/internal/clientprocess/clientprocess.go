// Package clientprocess names the process that started this one. Servers that one client
// started have the same name for it, and nobody else has: so it stands for a session that
// the client does not name.
package clientprocess

import (
	"fmt"
	"os"
)

// Name returns the name of the process that started this one: its id and the time when it
// began, as ids are used again. It returns "" where that cannot be found out, and if the
// process has ended.
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
