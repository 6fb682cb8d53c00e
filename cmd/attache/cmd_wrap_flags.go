package main

import (
	"errors"
	"strings"
)

// errEmptyFlag is what is wrong with a flag that was given no text.
var errEmptyFlag = errors.New("the value is empty: was it a variable that is not set?")

// carriedFlags returns the flags of attache that go into the entries of a file, as
// arguments. Relative paths become absolute, because the client starts attache in
// another directory; in a shared file they stay, because other machines have other
// directories. A value with a variable of the client, such as ${workspaceFolder}, stays
// as it is.
func (j *wrapJob) carriedFlags(shared bool) ([]string, error) {
	var problems Problems
	var args []string
	carry := func(name string, v scalar) {
		text, err := j.flags.get(name)
		if err == nil && !j.flags.has(name) {
			return
		}
		if err == nil && text == "" {
			err = errEmptyFlag
		}
		if err == nil && !strings.Contains(text, "${") {
			if err = v.set(text, ""); !shared {
				text = v.String()
			}
		}
		if err != nil {
			problems.add(Origin{Name: "--" + name}, "%v", err)
		}
		args = append(args, "--"+name, text)
	}
	var config string
	carry("config", file{&config})
	for _, o := range options(defaultSettings("")) {
		if v, ok := o.value.(scalar); ok && o.flag != "" {
			carry(o.flag, v)
		}
	}
	return args, problems.err()
}
