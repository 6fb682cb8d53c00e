// Package proxytest tests layers and the relay with a scripted client and a
// scripted server, in memory and without a process.
//
// # Scripts
//
// [Play] plays a text file, so that a test needs no Go to add:
//
//	# A tool call and its reply pass as they are.
//	client-> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}
//	server-> {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
//	close client
//	eof server
//	exit
//	end
//
// The lines of a script:
//
//	client> LINE    the client sends LINE and a newline
//	server< LINE    the next line that reaches the server is LINE, byte for byte
//	server<~ LINE   LINE is among those that have reached the server
//	client-> LINE   both: the client sends LINE, and it reaches the server as it is
//	server> LINE, client< LINE, server-> LINE   the same the other way
//	client>q "..."  as a Go string: exactly these bytes, so several lines at
//	                once, CRLF, half a line; also <q, <~q and ->q, for one line
//	quiet           no line is on its way to either peer
//	close client    the client closes its end: no more input
//	close server    the server closes its stdout
//	deaf client     the client reads no more: its end of stdout is closed
//	deaf server     the server closes its stdin
//	eof server      the server has seen the end of its input
//	exit [TEXT]     the server ends; TEXT says how, nothing for a clean exit. Where it is
//	                started again, the lines that follow are of the next server
//	unstartable [TEXT]   the server cannot be started any more, and why; again without TEXT
//	restart [refused]   the server is to be ended and started again
//	cancel          the context of the session is done
//	wait DURATION   time passes; the clock is a fake one and costs nothing
//	end [TEXT]      the session is over, with an error that has TEXT in it
//	note TEXT       a layer has called Session.Note with TEXT
//	log TEXT        the relay has logged something with TEXT in it
//
// and before the first of them:
//
//	layers NAME[=ARG]...        layers of Player.Named, outermost first
//	option hold BYTES           as the fields of proxy.Options are called:
//	option in_flight N
//	option enforce
//	option dry_run
//	option forward_noise
//	option client_reads         a client that has closed its end waits for its answers
//	option id_prefix TEXT
//	option restart [notice] [resumed] [hold=DURATION] [hang=DURATION] [retry=TOOL]   the server is started again;
//	                lists that have changed are taken as a note
//	option arguments NAME... [/ NAME...]...   a slash goes one object deeper
//	option guarded TEXT...
//	option start_error TEXT     the server cannot be started
//
// Lines that begin with # are comments. <<N*TEXT>> in a line that is sent or
// expected is N times TEXT. What arrived and nobody expected fails the script at
// its end. A file may hold several scripts, as a txtar archive does: each behind a
// line "-- name --".
//
// A script is played in a bubble of testing/synctest: everything that can
// happen after a line has happened before the next, time-outs pass at once, and
// a goroutine left behind fails the test. Layers that use the network cannot be
// played so; use [Setup.Start] for them.
//
// # Recorded sessions
//
// [Replay] plays a file that `attache --record` wrote, and compares.
package proxytest
