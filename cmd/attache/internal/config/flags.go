package config

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
)

// Flags are the values that flags were given, by the name of the flag. They
// are only kept here; [Load] reads them, so that all mistakes are reported at
// once.
type Flags map[string]*flag

const FileHelp = "configuration file, instead of attache/config.yaml in the user's configuration directory"

// AddFlags gives cmd the flags that stand above the configuration, without those
// that cmd has itself.
func AddFlags(cmd *cobra.Command) Flags {
	values := AddFlag(cmd, Flags{}, "config", "FILE", FileHelp)
	for _, o := range Options(&Settings{}) {
		if o.Flag == "" || o.of != "" && o.of != cmd.Name() || cmd.Flags().Lookup(o.Flag) != nil {
			continue
		}
		AddFlag(cmd, values, o.Flag, o.Hint, o.Help)
		if v, ok := o.value.(choice); ok {
			_ = cmd.RegisterFlagCompletionFunc(o.Flag, cobra.FixedCompletions(v.words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return values
}

// AddFlag gives cmd one flag, kept in values. Without a hint it takes no value.
func AddFlag(cmd *cobra.Command, values Flags, name, hint, help string) Flags {
	v := &flag{hint: hint}
	values[name] = v
	f := cmd.Flags().VarPF(v, name, "", help)
	if hint == "" {
		f.NoOptDefVal = "true"
	}
	return values
}

// Get returns what the flag name was given, empty if it was not.
func (f Flags) Get(name string) (string, error) {
	v := f[name]
	if v == nil || len(v.given) == 0 {
		return "", nil
	}
	if len(v.given) > 1 {
		return "", errors.New("given " + strconv.Itoa(len(v.given)) + " times: give it once")
	}
	return v.given[0], nil
}

// Has reports whether the flag name was given, if only an empty text.
func (f Flags) Has(name string) bool {
	v := f[name]
	return v != nil && len(v.given) > 0
}

// flag is a flag that remembers each time it was given.
type flag struct {
	hint  string
	given []string
}

// String returns no value: the defaults are in the help's text.
func (v *flag) String() string { return "" }

// Set remembers s.
func (v *flag) Set(s string) error {
	v.given = append(v.given, s)
	return nil
}

// Type returns what stands for the value in the help.
func (v *flag) Type() string {
	if v.hint == "" {
		return "bool"
	}
	return v.hint
}
