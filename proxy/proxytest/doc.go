// Package proxytest tests layers and the relay with a scripted client and a
// scripted server, in memory and without processes.
//
// # Scripts
//
// [Play] plays text files, so that adding a test needs no Go code:
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
//	server<~ LINE   LINE is among the lines that have reached the server
//	client-> LINE   both: the client sends LINE, and it reaches the server unchanged
//	server> LINE, client< LINE, server-> LINE   the same in the other direction
//	client>q "..."  a Go string with exactly the bytes to send, such as several lines,
//	                CRLF, or half a line; also <q, <~q and ->q, for one line
//	quiet           no line is on its way to either peer
//	close client    the client closes the relay's stdin
//	close server    the server closes its stdout
//	deaf client     the client closes the relay's stdout
//	deaf server     the server closes its stdin
//	eof server      the server has seen the end of its input
//	exit [TEXT]     the server ends, with TEXT as its error or, without TEXT, cleanly. If
//	                it is started again, the following lines are for the next server
//	unstartable [TEXT]   from now on, starting the server fails with TEXT, or succeeds without TEXT
//	restart [refused]   end the server and start it again, as Control.Restart does
//	cancel          the context of the session is done
//	wait DURATION   time passes; the clock is fake, so the test does not wait
//	end [TEXT]      the session is over, with an error that contains TEXT
//	note TEXT       a layer has called Session.Note with TEXT
//	log TEXT        the relay has logged something that contains TEXT
//
// The following lines come before all others:
//
//	layers NAME[=ARG]...        layers of Player.Named, outermost first
//	option hold BYTES           options have the names of fields of proxy.Options:
//	option in_flight N
//	option enforce
//	option dry_run
//	option forward_noise
//	option client_reads         a client that has closed its end waits for its answers
//	option id_prefix TEXT
//	option restart [notice] [resumed] [hold=DURATION] [hang=DURATION] [retry=TOOL]   the server is started
//	                again when it ends; each list that has changed is a note
//	option arguments NAME... [/ NAME...]...   a slash begins the names one object deeper
//	option guarded TEXT...
//	option start_error TEXT     the server cannot be started
//
// Lines that begin with # are comments. <<N*TEXT>> in a line that is sent or
// expected means N times TEXT. Lines that nobody expected fail the script at its
// end. A file may contain several scripts, as a txtar archive: a line "-- name --"
// precedes each of them.
//
// A script is played in a bubble of testing/synctest: everything that can happen
// after a line happens before the next line, time-outs pass at once, and a
// remaining goroutine fails the test. This does not work for layers that use the
// network; test them with [Setup.Start].
//
// # Recorded sessions
//
// [Replay] plays a file that `attache --record` wrote, and compares.
package proxytest
