package config

import (
	"errors"
	"strings"
)

// errEmptyFlag is what is wrong with a flag that was given no text.
var errEmptyFlag = errors.New("the value is empty: was it a variable that is not set?")

// Carry returns the flags of attache that go into the entries of a file, as
// arguments. Relative paths become absolute, because the client starts attache in
// another directory; in a shared file they stay, because other machines have other
// directories. A value with a variable of the client, such as ${workspaceFolder}, stays
// as it is.
func (f Flags) Carry(shared bool) ([]string, error) {
	var problems Problems
	var args []string
	carry := func(name string, v scalar) {
		text, err := f.Get(name)
		if err == nil && !f.Has(name) {
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
			problems.Add(Origin{Name: "--" + name}, "%v", err)
		}
		args = append(args, "--"+name, text)
	}
	var path string
	carry("config", file{&path})
	for _, o := range Options(DefaultSettings("")) {
		if v, ok := o.value.(scalar); ok && o.Flag != "" {
			carry(o.Flag, v)
		}
	}
	return args, problems.Err()
}
