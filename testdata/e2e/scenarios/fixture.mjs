// The fixture servers: servers/dual.mjs uses the v2 server package, servers/legacy.mjs
// the v1 SDK, and goserver the go-sdk. They offer the same tools under the same names.
// If one of them lacks something, the direct run has the same error.
const isGo = session => session.client.getServerVersion()?.name === 'attache-go';

/** The go-sdk's server handles requests concurrently, so the order of its messages is random. */
function concurrent(session) {
    session.transcript.unordered ||= isGo(session);
}

export async function handshake(session) {
    await session.barrier();
}

export async function tools(session) {
    await session.list('tools');
    await session.call('echo', { text: 'plain' });
    await session.call('echo', { text: 'ä € 😀 \u2028 \u0000 \\ " / <b>&amp;' }, { label: 'echo, hard characters' });
    await session.call('echo', { text: 'traced' }, {
        label: 'echo with _meta',
        meta: {
            traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
            'com.example/nested': { deep: [true, null, 1.25e-9, { '': 'empty key' }] }
        }
    });
    await session.call('add', { a: 2, b: 40 });
    await session.call('add', { a: 'two' }, { label: 'add, refused' });
    await session.call('fail', {});
    await session.call('no-such-tool', {});
}

/** Makes a call before any list. All other scenarios list first, as every host does. */
export async function callfirst(session) {
    await session.call('echo', { text: 'first' });
    await session.call('echo', undefined, { label: 'echo without arguments' });
    await session.list('tools');
}

export async function content(session) {
    await session.list('resources');
    await session.list('resourceTemplates');
    await session.list('prompts');
    await session.read('fixture://note/1');
    await session.read('fixture://item/42');
    await session.read('fixture://nowhere');
    await session.prompt('greet', { name: 'Ada' });
    await session.prompt('nobody');
    await session.complete({ type: 'ref/prompt', name: 'greet' }, { name: 'name', value: 'A' });
    await session.complete({ type: 'ref/resource', uri: 'fixture://item/{id}' }, { name: 'id', value: '4' });
}

/** Server requests: messages in the legacy era, input_required rounds in the modern era. */
export async function ask(session) {
    await session.list('tools');
    await session.call('sample', { prompt: 'a line' });
    session.elicitations = ['accept', 'decline', 'cancel'];
    for (const answer of [...session.elicitations]) await session.call('elicit', { question: 'Deploy?' }, { label: `elicit, ${answer}` });
    await session.call('roots', {});
    await session.call('rounds', { env: 'staging' });
    await session.prompt('ask-prompt');
    await session.read('fixture://ask');
}

/** A client without capabilities. */
refuse.settings = () => ({ capabilities: {} });
export async function refuse(session) {
    await session.list('tools');
    await session.call('sample', { prompt: 'a line' });
    await session.call('elicit', { question: 'Deploy?' });
    await session.call('roots', {});
}

export async function progress(session) {
    await session.list('tools');
    // Check only the recorded messages: see the comment in session.mjs.
    for (const steps of [5, 0]) await session.call('progress', { steps }, { label: `progress of ${steps}`, onprogress() {} });
    await session.call('progress', { steps: 2 }, { label: 'progress nobody asked for' });
}

export async function cancellation(session) {
    await session.list('tools');
    concurrent(session);
    const controller = new AbortController();
    const { outcome, id } = await session.begin('block', {}, { signal: controller.signal });
    controller.abort('no longer wanted');
    await outcome;
    await session.call('cancelled', {});
    // The go-sdk answers even a cancelled call.
    if (isGo(session)) await session.transcript.until(m => m.id === id && m.method === undefined, 'the answer to the cancelled call');
}

export async function logging(session) {
    await session.list('tools');
    if (session.modern) {
        await session.call('log', {}, { label: 'log, no level' });
        await session.call('log', {}, { label: 'log at warning', meta: { 'io.modelcontextprotocol/logLevel': 'warning' } });
        return;
    }
    await session.step('level', () => session.client.setLoggingLevel('warning'));
    await session.call('log', {}, { label: 'log at warning' });
}

/** Change notifications: unsolicited in the legacy era, over subscriptions/listen in the modern era. */
export async function changes(session) {
    await session.list('tools');
    concurrent(session);
    const uri = 'fixture://note/1';
    let subscription;
    if (session.modern) {
        subscription = await session.step('listen', async () => {
            const opened = await session.client.listen({ toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: [uri] });
            return Object.assign(opened, { toJSON: () => ({ honored: opened.honoredFilter }) });
        });
    } else {
        await session.step('subscribe', () => session.client.subscribeResource({ uri }));
    }
    await session.call('touch', { uri });
    await session.until('notifications/resources/updated');
    await session.call('touch', { uri: 'fixture://note/2' }, { label: 'touch what nobody subscribed to' });
    await session.call('grow', {});
    await session.until('notifications/tools/list_changed');
    await session.list('tools');
    if (session.modern) {
        await session.step('close', async () => {
            await subscription?.close();
            return subscription?.closed;
        });
    } else {
        await session.step('unsubscribe', () => session.client.unsubscribeResource({ uri }));
    }
    if (session.modern && isGo(session)) await session.transcript.until(m => m.id === 'listen:0', "the listen request's result");
    await session.call('touch', { uri }, { label: 'touch when nobody listens' });
    await session.barrier();
}

/** Frames around the sizes of buffers; the SDKs have a limit of 10 MiB. */
export async function large(session) {
    await session.list('tools');
    for (const bytes of [4095, 65536, 1 << 20, 9 << 20]) {
        await session.call('large', { bytes }, { label: `large ${bytes}` });
        await session.call('measure', { text: 'é'.repeat(bytes / 2) }, { label: `measure ${bytes}` });
    }
}

/** Many concurrent calls. */
export async function burst(session) {
    await session.list('tools');
    session.transcript.unordered = true;
    const texts = Array.from({ length: 200 }, (_, i) => `call ${i}`);
    await session.step('burst', async () => {
        const results = await Promise.all(texts.map(text => session.sdk.call(session.client, { name: 'echo', arguments: { text } }, {})));
        return results.map(r => r.content.at(-1).text);
    });
}

/** Methods that no SDK defines must be forwarded, too. */
export async function vendor(session) {
    await session.list('tools');
    await session.request('acme/unknown', { x: 1 });
    await session.step('notify', () => session.client.notification({ method: 'notifications/acme/hello', params: { x: [1, { y: null }] } }));
    await session.call('heard', {});
}

/** Makes the calls for the briefing test: the first calls of a session. */
export async function briefing(session) {
    await session.list('tools');
    await session.call('echo', { text: 'first' });
    await session.call('echo', { text: 'second' });
}

// Tasks of revision 2025-11-25, which only the v1 SDK supports. The task ends
// when it is released, so at least one poll finds it running.
export async function tasks(session) {
    if (session.sdk.task === undefined) {
        await session.list('tools');
        await session.call('job', { text: 'x' }, { label: 'task tool without a task' });
        return;
    }
    for (const method of ['tasks/get', 'notifications/tasks/status']) session.transcript.polled.add(method);
    const tasks = session.sdk.tasks(session.client);
    await session.list('tools');
    const events = [];
    let released = false;
    await session.step('task', () =>
        session.sdk.task(session.client, { name: 'job', arguments: { text: 'parcel' } }, async event => {
            if (event.type !== 'taskStatus') events.push(event);
            if (event.type === 'taskCreated' && !released) {
                released = true;
                await session.call('release', { taskId: event.task.taskId });
            }
        })
    );
    await session.step('events', () => events);
    await session.step('second task', () =>
        session.sdk.task(session.client, { name: 'job', arguments: { text: 'lost' } }, async event => {
            if (event.type === 'taskCreated') await session.step('cancel', () => tasks.cancelTask(event.task.taskId));
        })
    );
    await session.step('task list', () => tasks.listTasks());
    await session.step('unknown task', () => tasks.getTask('nothing'));
}

/** The server exits during a call. */
export async function death(session) {
    await session.list('tools');
    await session.call('exit', { status: 7 });
}
