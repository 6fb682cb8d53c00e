// Vet runs the checks of go vet. It reads imports from their source, so to check the program for another
// system takes a tenth of the time of go vet, which compiles all imports for that system.
package main

import (
	"golang.org/x/tools/go/analysis/multichecker"
	"golang.org/x/tools/go/analysis/suite/vet"
)

func main() { multichecker.Main(vet.Suite...) }
