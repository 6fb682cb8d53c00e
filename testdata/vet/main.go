// Vet runs the checks of go vet for another system. go vet compiles all imports for that system, and
// needs ten times the CPU time; this program reads the source of the imports.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/suite/vet"
)

func main() { multichecker.Main(vet.Suite...) }
