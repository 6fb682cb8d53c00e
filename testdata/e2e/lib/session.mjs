// A common interface to both SDKs: the actions of a client in a scenario, and
// the client's answers to requests of a server.

export const CAPABILITIES = {
    roots: { listChanged: true },
    sampling: {},
    elicitation: { form: {}, url: {} }
};

export class Session {
    /**
     * @param sdk the functions that differ between the SDKs, see v1.mjs and v2.mjs
     * @param settings.capabilities the client's capabilities
     * @param settings.roots the client's roots
     */
    constructor(sdk, transcript, settings) {
        this.sdk = sdk;
        this.transcript = transcript;
        this.roots = settings.roots ?? [{ uri: 'file:///workspace/alpha', name: 'alpha' }, { uri: 'file:///workspace/beta' }];
        this.elicitations = [];
        this.client = sdk.client(settings.capabilities ?? CAPABILITIES);
        this.client.onerror = error => {
            // An SDK that reads a progress notification and the result in one chunk
            // settles the call first, and how the bytes are chunked is undefined.
            if (!/^Received a progress notification for an unknown token/.test(error.message)) transcript.error(error);
        };
        this.client.fallbackNotificationHandler = async notification => transcript.heard(notification);
        const can = settings.capabilities ?? CAPABILITIES;
        if (can.sampling) sdk.answer(this.client, 'sampling/createMessage', request => this.#sample(request));
        if (can.elicitation) sdk.answer(this.client, 'elicitation/create', request => this.#elicit(request));
        if (can.roots) sdk.answer(this.client, 'roots/list', () => ({ roots: this.roots }));
    }
    get era() {
        return this.sdk.era(this.client);
    }
    get modern() {
        return this.era === 'modern';
    }

    step(name, work) {
        return this.transcript.step(name, work);
    }
    /** Reports whether the client has a session. */
    connect(transport) {
        return this.step('connect', async () => {
            await this.client.connect(transport, { timeout: 120000 });
            return {
                era: this.era,
                server: this.client.getServerVersion(),
                capabilities: this.client.getServerCapabilities(),
                instructions: this.client.getInstructions()
            };
        });
    }
    /** Lists all pages of tools, prompts, resources or resourceTemplates. */
    list(kind) {
        return this.step(`list ${kind}`, () => this.sdk.list(this.client, kind));
    }
    call(name, args, { label = name, meta, ...options } = {}) {
        const params = { name, ...(args !== undefined && { arguments: args }), ...(meta && { _meta: meta }) };
        return this.step(`call ${label}`, () => this.sdk.call(this.client, params, { timeout: 120000, ...options }));
    }
    read(uri) {
        return this.step(`read ${uri}`, () => this.client.readResource({ uri }));
    }
    prompt(name, args) {
        return this.step(`prompt ${name}`, () => this.client.getPrompt({ name, ...(args && { arguments: args }) }));
    }
    complete(ref, argument, context) {
        return this.step(`complete ${argument.name}=${argument.value}`, () =>
            this.client.complete({ ref, argument, ...(context && { context }) })
        );
    }
    /** Sends a request that the SDK need not know. */
    request(method, params) {
        return this.step(`request ${method}`, () => this.sdk.request(this.client, method, params));
    }
    /** Starts a call, waits until the server has received it, and returns the promise of its outcome and its id. */
    async begin(name, args, options) {
        const outcome = this.call(name, args, options);
        const sent = () => this.transcript.last('tools/call')?.params.name === name;
        while (!sent()) await new Promise(resolve => setImmediate(resolve)); // v2 first looks up the tool
        const { id } = this.transcript.last('tools/call');
        await this.barrier();
        return { outcome, id };
    }
    /** Waits until the server has received all messages sent before. */
    async barrier() {
        await (this.modern ? this.sdk.request(this.client, 'server/discover', {}) : this.client.ping());
    }
    until(method, what) {
        return this.transcript.until(m => m.method === method && (what === undefined || what(m.params ?? {})), method);
    }

    #sample({ params }) {
        const last = params.messages.at(-1)?.content;
        const text = (Array.isArray(last) ? last[0] : last)?.text ?? '';
        return { model: 'scripted', role: 'assistant', stopReason: 'endTurn', content: { type: 'text', text: `sampled: ${text}` } };
    }
    #elicit({ params }) {
        const action = this.elicitations.shift() ?? 'accept';
        if (action !== 'accept' || params.mode === 'url') return { action };
        return { action, content: fill(params.requestedSchema) };
    }
}

/** Returns values for a form: defaults, first choices, or any value of the type. */
function fill({ properties = {}, required = [] }) {
    const content = {};
    for (const [name, property] of Object.entries(properties)) {
        const choice = property.enum?.[0] ?? property.oneOf?.[0]?.const ?? property.items?.enum?.[0] ?? property.items?.anyOf?.[0]?.const;
        if (property.default !== undefined) content[name] = property.default;
        else if (property.type === 'array') content[name] = [choice];
        else if (choice !== undefined) content[name] = choice;
        else if (!required.includes(name)) continue;
        else if (property.type === 'boolean') content[name] = true;
        else if (property.type === 'number' || property.type === 'integer') content[name] = property.minimum ?? 7;
        else content[name] = 'given';
    }
    return content;
}
