package child

import (
	"errors"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// procThreadAttributeJobList is PROC_THREAD_ATTRIBUTE_JOB_LIST of
// UpdateProcThreadAttribute: the jobs that a process starts in (since Windows 10).
const procThreadAttributeJobList = 0x0002000D

// newJob returns a new job object that ends all its processes when its last handle is
// closed. No process can leave it, because it does not allow breakaway.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil) // children do not inherit the handle
	if err != nil {
		return 0, os.NewSyscallError("CreateJobObject", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, os.NewSyscallError("SetInformationJobObject", err)
	}
	return job, nil
}

// createProcess starts a program, in a job if job is not 0. os.StartProcess does not
// support jobs, and to add a process to a job later would miss what it has already
// started. The caller closes the handle.
func createProcess(path string, o Options, files [3]*os.File, job windows.Handle) (pid int, process windows.Handle, err error) {
	program, line, err := commandLine(path, o.Argv)
	if err != nil {
		return 0, 0, err
	}
	environment, err := environmentBlock(o.Env)
	if err != nil {
		return 0, 0, err
	}
	var dir *uint16
	if o.Dir != "" {
		if dir, err = windows.UTF16PtrFromString(o.Dir); err != nil {
			return 0, 0, err
		}
	}
	handles, closeHandles, err := inheritable(files)
	defer closeHandles()
	if err != nil {
		return 0, 0, err
	}
	attributes, err := newAttributes(&handles, &job)
	if err != nil {
		return 0, 0, err
	}
	defer attributes.Delete()

	info := windows.StartupInfoEx{ProcThreadAttributeList: attributes.List()}
	info.Cb = uint32(unsafe.Sizeof(info))
	// If attache has no console, as below a desktop app, Windows opens one for the child: hide it.
	info.Flags = windows.STARTF_USESTDHANDLES | windows.STARTF_USESHOWWINDOW
	info.ShowWindow = windows.SW_HIDE
	info.StdInput, info.StdOutput, info.StdErr = handles[0], handles[1], handles[2]
	var made windows.ProcessInformation
	err = windows.CreateProcess(program, line, nil, nil, true,
		windows.CREATE_UNICODE_ENVIRONMENT|windows.EXTENDED_STARTUPINFO_PRESENT,
		&environment[0], dir, &info.StartupInfo, &made)
	if err != nil {
		return 0, 0, err
	}
	_ = windows.CloseHandle(made.Thread)
	return int(made.ProcessId), made.Process, nil
}

// commandLine returns the file to start and its command line. For a batch file these
// are the command interpreter, which Windows would start in any case, and a line that
// is quoted for it.
func commandLine(path string, argv []string) (program, line *uint16, err error) {
	text := windows.ComposeCommandLine(argv)
	if isBatchFile(path) {
		system, err := windows.GetSystemDirectory()
		if err != nil {
			return nil, nil, os.NewSyscallError("GetSystemDirectory", err)
		}
		if text, err = batchLine(path, argv[1:]); err != nil {
			return nil, nil, err
		}
		path = filepath.Join(system, "cmd.exe")
	}
	if program, err = windows.UTF16PtrFromString(path); err != nil {
		return nil, nil, err
	}
	line, err = windows.UTF16PtrFromString(text)
	return program, line, err
}

// environmentBlock returns an environment as CreateProcess requires it: each variable
// once, a NUL after each entry, and one more at the end.
func environmentBlock(env []string) ([]uint16, error) {
	var block []uint16
	for _, entry := range lastOfEach(env) {
		text, err := windows.UTF16FromString(entry)
		if err != nil {
			return nil, err
		}
		block = append(block, text...)
	}
	if len(block) == 0 { // an empty block has two NULs as well
		block = append(block, 0)
	}
	return append(block, 0), nil
}

// inheritable returns handles of the files that a child can inherit, and a function
// that closes them. Call the function also after an error.
func inheritable(files [3]*os.File) (handles [3]windows.Handle, closeAll func(), err error) {
	closeAll = func() {
		for _, h := range handles {
			if h != 0 {
				_ = windows.CloseHandle(h)
			}
		}
	}
	self := windows.CurrentProcess()
	for i, f := range files {
		err = windows.DuplicateHandle(self, windows.Handle(f.Fd()), self, &handles[i], 0, true, windows.DUPLICATE_SAME_ACCESS)
		if err != nil {
			return handles, closeAll, os.NewSyscallError("DuplicateHandle", err)
		}
	}
	return handles, closeAll, nil
}

// newAttributes returns attributes for a child that inherits these handles only, and
// that starts in job unless that is 0. handles and job must not move before Delete.
func newAttributes(handles *[3]windows.Handle, job *windows.Handle) (*windows.ProcThreadAttributeListContainer, error) {
	list, err := windows.NewProcThreadAttributeList(2)
	if err != nil {
		return nil, os.NewSyscallError("InitializeProcThreadAttributeList", err)
	}
	err = list.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST, unsafe.Pointer(handles), unsafe.Sizeof(*handles))
	if *job != 0 {
		err = errors.Join(err, list.Update(procThreadAttributeJobList, unsafe.Pointer(job), unsafe.Sizeof(*job)))
	}
	if err != nil {
		list.Delete()
		return nil, os.NewSyscallError("UpdateProcThreadAttribute", err)
	}
	return list, nil
}
