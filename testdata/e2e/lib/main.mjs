// The command line that both drivers share:
//
//     node v1.mjs SCENARIO... -- SERVER ARG...
//     node v2.mjs --mode legacy|auto|pin SCENARIO... -- SERVER ARG...
//
// Each scenario has its own client and server. A URL in place of the server's command
// is the address of a server over Streamable HTTP.
//
// The transcripts are written to stdout, one after the other, and the server's stderr to
// stderr. The exit status is 0 if all scenarios were completed, even if the server failed calls.
import { Session } from './session.mjs';
import { Transcript, record } from './transcript.mjs';

const BOOKS = ['everything', 'filesystem', 'memory', 'git', 'fixture'];

export async function main(sdk, argv) {
    const split = argv.indexOf('--');
    const names = argv.slice(0, split);
    const server = argv.slice(split + 1);
    if (split < 1 || server.length === 0) throw new Error('usage: node vN.mjs [--mode MODE] BOOK/SCENARIO... -- SERVER ARG...');
    for (const name of names) await run(sdk, name, server);
}

async function run(sdk, name, [command, ...args]) {
    const [book, title] = name.split('/');
    if (!BOOKS.includes(book)) throw new Error(`no scenarios for ${book}`);
    const scenario = (await import(`../scenarios/${book}.mjs`))[title];
    if (scenario === undefined) throw new Error(`no scenario ${title} in ${book}`);

    const transcript = new Transcript();
    const session = new Session(sdk, transcript, scenario.settings?.() ?? {});
    // Over HTTP messages arrive on several streams, whose relative order is undefined.
    transcript.unordered = process.env.E2E_UNORDERED === '1';
    const inner = /^https?:/.test(command)
        ? sdk.http(new URL(command))
        : sdk.transport({ command, args, env: { ...process.env }, stderr: 'inherit' });
    const transport = record(inner, transcript);
    try {
        const connected = (await session.connect(transport)) !== undefined;
        if (connected) await scenario(session);
        else if (title !== 'handshake') process.exitCode = 1; // a handshake may be refused
    } catch (error) {
        console.error(error);
        process.exitCode = 1;
    } finally {
        // The server's exit status is part of the transcript. close() kills the server
        // after 2 s, which is too short on a busy machine, so wait longer before that.
        await transport.hangUp?.(20000);
        await transport.terminateSession?.();
        await session.client.close();
        await transport.exited;
        transcript.print(line => process.stdout.write(line));
    }
}
