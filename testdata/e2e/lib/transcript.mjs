// A transcript is everything one client saw and said in one scenario: each
// step's outcome as the SDK's user sees it, then every message as it crossed
// the transport, in order of arrival. Two runs of one scenario must give the
// same transcript, whatever stands between client and server.
import { createHash } from 'node:crypto';
import { constants } from 'node:os';

// What is random in every run, and nothing else. Each distinct value keeps its
// own name, numbered by first appearance, so that two ids which are equal in
// one run have to be equal in the other.
const RANDOM = [
    ['uuid', /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g],
    ['hex32', /\b[0-9a-f]{32}\b/g]
];
// Values that carry no identity: an instant, the time of day, a Date's own spelling, and
// the message server-everything's simulated logging picks with Math.random.
const VARYING = [
    ['<instant>', /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g],
    ['<time>', /\b\d{1,2}:\d\d:\d\d [AP]M\b/g],
    ['<date>', /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} \d\d \d{4} \d\d:\d\d:\d\d GMT[+-]\d{4} \([^)]*\)/g],
    ['"level":"<level>","data":"<message>"', /"level":"[a-z]+","data":"(?:[A-Z][a-z]+-level message|Alert level-message)"/g]
];
const LONG = 2048;

export class Transcript {
    #lines = { step: [], heard: [], recv: [], sent: [], error: [] };
    #waiters = new Set();
    #names = new Map();
    #counts = new Map();
    #hides = false;
    #hidden = new Set();
    /** Set when the order of arrival is the server's scheduling and not the wire's. */
    unordered = false;
    /** Methods that depend on how often the client polls; left out of the wire's record. */
    polled = new Set();
    exit = undefined;

    /** Runs one step and keeps how it ended. A failing step does not end the scenario. */
    async step(name, work) {
        try {
            const result = await work();
            this.#lines.step.push({ step: name, result: result === undefined ? null : result });
            return result;
        } catch (error) {
            this.#lines.step.push({ step: name, error: describe(error) });
            return undefined;
        }
    }
    heard(notification) {
        this.#lines.heard.push({ heard: notification });
    }
    error(error) {
        this.#lines.error.push({ error: describe(error) });
    }
    recv(message) {
        this.#lines.recv.push(message);
        for (const waiter of this.#waiters) waiter(message);
    }
    sent(message) {
        this.#lines.sent.push(message);
        if (this.#hides && message.id !== undefined) this.#hidden.add(message.id);
    }
    /** Calls work until it returns true. Its requests are not in the transcript: their number depends on time. */
    async poll(work) {
        this.#hides = true;
        while (!(await work())) await new Promise(resolve => setTimeout(resolve, 20));
        this.#hides = false;
    }
    /** Waits for a message of the server, past or to come, which the predicate accepts. */
    until(accepts, what = 'a message', ms = 120000) {
        if (this.#lines.recv.some(accepts)) return Promise.resolve();
        return new Promise((resolve, reject) => {
            const done = outcome => {
                clearTimeout(timer);
                this.#waiters.delete(waiter);
                outcome();
            };
            const waiter = message => accepts(message) && done(resolve);
            const timer = setTimeout(() => done(() => reject(new Error(`waited ${ms} ms for ${what}`))), ms);
            this.#waiters.add(waiter);
        });
    }
    /** The last request of a method the client sent. */
    last(method) {
        return this.#lines.sent.findLast(m => m.method === method);
    }
    /** The transcript as JSON lines, with what is random in it named. */
    print(write) {
        const { step, heard, recv, sent, error } = this.#lines;
        const asks = m => m.method !== undefined && m.id !== undefined;
        const hidden = new Set([...this.#hidden, ...sent.filter(m => asks(m) && this.polled.has(m.method)).map(m => m.id)]);
        const keptSent = m => !(this.polled.has(m.method) || (asks(m) && hidden.has(m.id)));
        const keptRecv = m => !(this.polled.has(m.method) || (m.method === undefined && hidden.has(m.id)));
        // The ids of later requests count those that are left out.
        const numbers = new Map(sent.filter(m => asks(m) && keptSent(m)).map((m, i) => [m.id, i]));
        const renumber = m => (hidden.size > 0 && typeof m.id === 'number' && numbers.has(m.id) ? { ...m, id: numbers.get(m.id) } : m);
        const sorted = values => {
            const lines = values.map(v => this.#encode(v));
            return this.unordered ? lines.sort() : lines;
        };
        const lines = [
            ...step.map(l => this.#encode(l)),
            ...sorted(heard),
            ...sorted(recv.filter(keptRecv).map(m => ({ recv: m.method === undefined ? renumber(m) : m }))),
            ...sorted(sent.filter(keptSent).map(m => ({ sent: asks(m) ? renumber(m) : m }))),
            ...sorted(error),
            JSON.stringify({ exit: this.exit ?? null })
        ];
        for (const line of lines) write(line + '\n');
    }
    #encode(value) {
        let text = JSON.stringify(value, (key, v) => {
            if (key === 'requestState' && typeof v === 'string') return this.#name('state', v);
            if (typeof v === 'string' && v.length > LONG) {
                return `<${v.length} characters, sha256 ${createHash('sha256').update(v).digest('hex').slice(0, 12)}>`;
            }
            return v;
        });
        for (const [kind, pattern] of RANDOM) text = text.replace(pattern, match => this.#name(kind, match));
        for (const [name, pattern] of VARYING) text = text.replace(pattern, name);
        return text;
    }
    #name(kind, value) {
        const key = `${kind} ${value}`;
        if (!this.#names.has(key)) {
            const n = (this.#counts.get(kind) ?? 0) + 1;
            this.#counts.set(kind, n);
            this.#names.set(key, `<${kind}-${n}>`);
        }
        return this.#names.get(key);
    }
}

/** What a user of the SDK can tell of an error: stack traces are the SDK's own business. */
function describe(error) {
    const { name, code, message, data } = error ?? {};
    return { name, code, message: message ?? String(error), data };
}

/**
 * Records what crosses a transport. The instance is patched and not subclassed:
 * the v2 client probes on a sibling process only for its own class exactly.
 */
export function record(transport, transcript) {
    let deliver;
    Object.defineProperty(transport, 'onmessage', {
        configurable: true,
        get: () => deliver,
        set(handler) {
            deliver =
                handler &&
                ((message, extra) => {
                    transcript.recv(structuredClone(message));
                    return handler(message, extra);
                });
        }
    });
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
        transcript.sent(structuredClone(message));
        return send(message, options);
    };
    const start = transport.start.bind(transport);
    transport.start = async () => {
        await start();
        const child = transport._process; // no public way to the exit status
        if (child === undefined) return; // over HTTP there is none
        transport.exited = new Promise(resolve => {
            child.once('exit', (code, signal) => {
                // As a shell says it: a relay cannot die of its server's signal. A
                // server that does not leave at the end of its stdin is shot, and
                // with which signal depends on who loses patience first.
                const status = code ?? 128 + constants.signals[signal];
                transcript.exit = status === 143 || status === 137 ? 'shot' : status;
                resolve();
            });
        });
        /** Ends the server's stdin and waits for it to leave, but no longer than this. */
        transport.hangUp = ms => {
            child.stdin.end();
            return Promise.race([transport.exited, new Promise(resolve => setTimeout(resolve, ms).unref())]);
        };
    };
    return transport;
}
