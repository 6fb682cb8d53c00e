// Package revive starts the server of a relay's session again when it has ended under its
// client. The [Supervisor] does: it puts another [Link] in the place of the one whose
// server has ended, starts a server when [Pace] says so, tells it what it has to know
// ([Record]), and lets frames through to it. Until then the [Gate] of the link keeps what
// is written.
//
// What the old server leaves open is in [ServerRequests] and [Listens]; what the client
// and its model are told comes from [Ending] and [Notice]. The relay knows its calls, and
// says which of them the old server had ([Relay]).
//
// R1 to R20 in comments are the rules of docs/restart.md.
package revive
