package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// flagValues are the values that flags were given, by the name of the flag. They
// are only kept here; [loadSettings] reads them, so that all mistakes are told at
// once.
type flagValues map[string]*flagValue

const configHelp = "configuration file, instead of attache/config.yaml in the user's configuration directory"

// addFlags gives cmd the flags that stand above the configuration, without those
// that cmd has itself.
func addFlags(cmd *cobra.Command) flagValues {
	values := addFlag(cmd, flagValues{}, "config", "FILE", configHelp)
	for _, o := range options(&Settings{}) {
		if o.flag == "" || cmd.Flags().Lookup(o.flag) != nil {
			continue
		}
		addFlag(cmd, values, o.flag, o.hint, o.help)
		if v, ok := o.value.(choice); ok {
			_ = cmd.RegisterFlagCompletionFunc(o.flag, cobra.FixedCompletions(v.words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return values
}

// addFlag gives cmd one flag, kept in values. Without a hint it takes no value.
func addFlag(cmd *cobra.Command, values flagValues, name, hint, help string) flagValues {
	v := &flagValue{hint: hint}
	values[name] = v
	f := cmd.Flags().VarPF(v, name, "", help)
	if hint == "" {
		f.NoOptDefVal = "true"
	}
	return values
}

// get returns what the flag name was given, empty if it was not.
func (f flagValues) get(name string) (string, error) {
	v := f[name]
	if v == nil || len(v.given) == 0 {
		return "", nil
	}
	if len(v.given) > 1 {
		return "", errors.New("given " + itoa(len(v.given)) + " times: give it once")
	}
	return v.given[0], nil
}

// has reports whether the flag name was given, if only an empty text.
func (f flagValues) has(name string) bool {
	v := f[name]
	return v != nil && len(v.given) > 0
}

// flagValue is a flag that remembers each time it was given.
type flagValue struct {
	hint  string
	given []string
}

// String returns no value: the defaults are in the help's text.
func (v *flagValue) String() string { return "" }

// Set remembers s.
func (v *flagValue) Set(s string) error {
	v.given = append(v.given, s)
	return nil
}

// Type returns what stands for the value in the help.
func (v *flagValue) Type() string {
	if v.hint == "" {
		return "bool"
	}
	return v.hint
}
