// A transcript is everything that one client received and sent in a scenario:
// the outcome of each step as the SDK's user sees it, then every message on the
// transport, in order of arrival. Two runs of a scenario must give the same
// transcript, whatever is between the client and the server.
import { createHash } from 'node:crypto';
import { constants } from 'node:os';

// Values that are random in every run. Each distinct value gets its own name,
// numbered by first appearance, so two ids that are equal in one run have to be
// equal in the other.
const RANDOM = [
    ['uuid', /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g],
    ['hex32', /\b[0-9a-f]{32}\b/g]
];
// Values whose identity does not matter: a timestamp, a time of day, a Date as text, and
// the message that server-everything's simulated logging picks with Math.random.
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
    /** True if the order of arrival depends on the server's scheduling. */
    unordered = false;
    /** Methods whose number depends on the client's polling; they are not recorded. */
    polled = new Set();
    exit = undefined;

    /** Runs one step and records its outcome. A step that fails does not end the scenario. */
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
    /** Calls work until it returns true. Its requests are not recorded, because their number depends on time. */
    async poll(work) {
        this.#hides = true;
        while (!(await work())) await new Promise(resolve => setTimeout(resolve, 20));
        this.#hides = false;
    }
    /** Waits for a message from the server that the predicate accepts. It may already have arrived. */
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
    /** Returns the client's last request with a method. */
    last(method) {
        return this.#lines.sent.findLast(m => m.method === method);
    }
    /** Returns the transcript as JSON lines, with names for random values. */
    print(write) {
        const { step, heard, recv, sent, error } = this.#lines;
        const asks = m => m.method !== undefined && m.id !== undefined;
        const hidden = new Set([...this.#hidden, ...sent.filter(m => asks(m) && this.polled.has(m.method)).map(m => m.id)]);
        const keptSent = m => !(this.polled.has(m.method) || (asks(m) && hidden.has(m.id)));
        const keptRecv = m => !(this.polled.has(m.method) || (m.method === undefined && hidden.has(m.id)));
        // The ids of later requests also count those that are not recorded.
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

/** Returns the parts of an error that matter to a user of the SDK, without the stack trace. */
function describe(error) {
    const { name, code, message, data } = error ?? {};
    return { name, code, message: message ?? String(error), data };
}

/**
 * Records the messages on a transport. It patches the instance instead of using
 * a subclass, because the v2 client probes in a separate process only if the
 * transport has exactly the SDK's class.
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
        const child = transport._process; // there is no public access to the exit status
        if (child === undefined) return; // there is no process over HTTP
        transport.exited = new Promise(resolve => {
            child.once('exit', (code, signal) => {
                // Signals become statuses as in a shell, because a relay cannot exit
                // with its server's signal. A server that does not exit at the end of
                // its stdin is killed, and the signal depends on who kills it first.
                const status = code ?? 128 + constants.signals[signal];
                transcript.exit = status === 143 || status === 137 ? 'shot' : status;
                resolve();
            });
        });
        /** Closes the server's stdin and waits up to ms milliseconds until the server exits. */
        transport.hangUp = ms => {
            child.stdin.end();
            return Promise.race([transport.exited, new Promise(resolve => setTimeout(resolve, ms).unref())]);
        };
    };
    return transport;
}
