package child

import "syscall"

// atomicWrite is PIPE_BUF: a write of up to that many bytes to a pipe is never partial.
const atomicWrite = 4096

// TryWrite writes b if the pipe has room for it now, and reports whether it did. It writes
// all of b or nothing. Only one goroutine at a time may call it.
func (i *Input) TryWrite(b []byte) (written bool, err error) {
	if len(b) > atomicWrite {
		return false, nil
	}
	if i.conn == nil { // kept for the next call, as try is: TryWrite allocates nothing then
		if i.conn, err = i.SyscallConn(); err != nil {
			return false, err
		}
		// It returns true also after EAGAIN. With false, conn.Write would wait for room.
		i.try = func(fd uintptr) bool {
			i.n, i.err = syscall.Write(int(fd), i.bytes)
			return true
		}
	}
	i.bytes = b
	err = i.conn.Write(i.try)
	i.bytes = nil
	switch {
	case err != nil:
		return false, err
	case i.err == syscall.EAGAIN || i.err == syscall.EINTR:
		return false, nil
	}
	return i.err == nil, i.err
}
