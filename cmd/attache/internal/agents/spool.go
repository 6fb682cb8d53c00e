package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/attache-mcp/attache/sessionstate/database"
	"github.com/attache-mcp/attache/sessionstate/teams"
	"github.com/attache-mcp/attache/sessionstate/textfile"
)

// A spooledEnd is the content of a file with the end of a run that could not be reported yet. The
// process that reports it removes the file.
type spooledEnd struct {
	Registry string // the registry's address, because attaches with different registries share the directory
	Run      teams.RunRef
	Ending   teams.Ending
}

// spoolName is the name of the directory with these files, in the directory of outputs.
const spoolName = "spool"

func spoolDirectory(outputs string) string { return filepath.Join(outputs, spoolName) }

func (e *spooledEnd) path(outputs string) string {
	return filepath.Join(spoolDirectory(outputs), fmt.Sprintf("%s-%d.json", e.Run.ID, e.Run.Run))
}

// write writes the file in one step.
func (e *spooledEnd) write(outputs string) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return textfile.Replace(e.path(outputs), text)
}

// send reports the end to the registry, and then removes the file.
func (e *spooledEnd) send(ctx context.Context, db *teams.Store, outputs string) error {
	_, err := db.EndRun(ctx, e.Run, e.Ending)
	if err == nil {
		_ = os.Remove(e.path(outputs)) // there is no file if the first attempt succeeded
	}
	return err
}

// sendSpooled reports the spooled ends of a registry's runs. Their supervisors gave up while the
// registry was not available, or were killed. If the registry refuses one end, the others are still
// reported, and it is retried for as long as the registry would keep its run.
func sendSpooled(ctx context.Context, db *teams.Store, outputs string, log *slog.Logger) {
	names, _ := filepath.Glob(filepath.Join(spoolDirectory(outputs), "*.json"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // another process reported it
		}
		var e spooledEnd
		if json.Unmarshal(text, &e) != nil || e.Registry != db.Address() {
			continue
		}
		err = e.send(ctx, db, outputs)
		if errors.Is(err, database.ErrDown) {
			return
		}
		if info, _ := os.Stat(name); err != nil && info != nil && time.Since(info.ModTime()) > teams.Retention {
			log.Warn("the end of an agent's run is not reported: the registry has refused it for seven days", "session", e.Run.ID, "run", e.Run.Run, "err", err)
			_ = os.Remove(name)
		}
	}
}
