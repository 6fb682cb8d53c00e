// server-everything is the reference server of the legacy era. It requests the
// client's roots 350 ms after the handshake and logs the answer. Each scenario
// first waits for that log message, so that later messages have a fixed order.
const settled = session => session.until('notifications/message', p => /^Roots updated/.test(p.data));

/** Lists the tools first, as every host does. */
async function ready(session) {
    await settled(session);
    await session.list('tools');
}

export async function handshake(session) {
    await settled(session);
    await session.step('ping', () => session.client.ping());
}

export async function tools(session) {
    await settled(session);
    await session.list('tools');
    await session.call('echo', { message: 'plain' });
    await session.call('echo', { message: 'ä € 😀 \u2028 \u0000 \\ " / <b>&amp;' }, { label: 'echo, hard characters' });
    await session.call('echo', { message: 'x'.repeat(1 << 20) }, { label: 'echo, one MiB' });
    await session.call('echo', { message: 'm' }, { label: 'echo with _meta', meta: { 'com.example/key': { a: [1, 2.5, null] }, progressToken: 'mine' } });
    await session.call('echo', {}, { label: 'echo without its argument' });
    await session.call('echo', undefined, { label: 'echo without arguments' });
    await session.call('no-such-tool', {});
    await session.call('get-sum', { a: 1.5, b: -0.25 });
    await session.call('get-sum', { a: 9007199254740991, b: 1e-7 }, { label: 'get-sum, extreme numbers' });
    await session.call('get-tiny-image', {});
    await session.call('get-structured-content', { location: 'New York' });
    await session.call('get-structured-content', { location: 'Nowhere' }, { label: 'get-structured-content, refused' });
    for (const messageType of ['error', 'success', 'debug']) {
        await session.call('get-annotated-message', { messageType, includeImage: messageType === 'debug' }, { label: `annotated ${messageType}` });
    }
    await session.call('get-resource-links', { count: 4 });
    await session.call('get-resource-reference', { resourceType: 'Text', resourceId: 3 });
    for (const outputType of ['resourceLink', 'resource']) {
        await session.call('gzip-file-as-resource', { name: 'a.gz', data: 'data:text/plain,hello%20there', outputType }, { label: `gzip as ${outputType}` });
    }
    await session.read('demo://resource/session/a.gz');
}

export async function resources(session) {
    await settled(session);
    await session.list('resources');
    await session.list('resourceTemplates');
    await session.read('demo://resource/static/document/architecture.md');
    await session.read('demo://resource/dynamic/text/7');
    await session.read('demo://resource/dynamic/text/none');
    await session.read('demo://resource/nowhere');
}

export async function prompts(session) {
    await settled(session);
    await session.list('prompts');
    await session.prompt('simple-prompt');
    await session.prompt('args-prompt', { city: 'Bergen', state: 'Vestland' });
    await session.prompt('args-prompt', {});
    await session.prompt('resource-prompt', { resourceType: 'Text', resourceId: '2' });
    await session.prompt('no-such-prompt');
}

export async function completion(session) {
    await settled(session);
    const team = { type: 'ref/prompt', name: 'completable-prompt' };
    await session.complete(team, { name: 'department', value: 'S' });
    await session.complete(team, { name: 'name', value: '' }, { arguments: { department: 'Sales' } });
    await session.complete({ type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' }, { name: 'resourceId', value: '12' });
    await session.complete({ type: 'ref/prompt', name: 'nobody' }, { name: 'name', value: '' });
}

export async function subscriptions(session) {
    await ready(session);
    const uri = 'demo://resource/dynamic/text/1';
    await session.step('subscribe', () => session.client.subscribeResource({ uri }));
    await session.call('toggle-subscriber-updates', {}, { label: 'updates on' });
    await session.until('notifications/resources/updated');
    await session.step('unsubscribe', () => session.client.unsubscribeResource({ uri }));
    await session.call('toggle-subscriber-updates', {}, { label: 'updates off' });
}

export async function logging(session) {
    await ready(session);
    await session.step('level', () => session.client.setLoggingLevel('debug'));
    await session.call('toggle-simulated-logging', {}, { label: 'logging on' });
    await session.until('notifications/message', p => /-level message|level-message/.test(p.data));
    await session.call('toggle-simulated-logging', {}, { label: 'logging off' });
    await session.step('bad level', () => session.client.setLoggingLevel('shouting'));
}

export async function sampling(session) {
    await ready(session);
    await session.call('trigger-sampling-request', { prompt: 'write a line', maxTokens: 10 });
}

export async function elicitation(session) {
    await ready(session);
    session.elicitations = ['accept', 'decline', 'cancel'];
    for (const answer of [...session.elicitations]) await session.call('trigger-elicitation-request', {}, { label: `elicitation, ${answer}` });
    await session.call('trigger-url-elicitation', { url: 'https://example.invalid/form', elicitationId: 'fixed-id', sendCompletionNotification: true });
}

export async function roots(session) {
    await ready(session);
    await session.call('get-roots-list', {});
    session.roots = [{ uri: 'file:///workspace/gamma', name: 'gamma' }];
    await session.step('roots changed', () => session.client.sendRootsListChanged());
    await session.transcript.until(m => m.method === 'notifications/message' && m.params.data === 'Roots updated: 1 root(s) received from client', 'the new roots');
    await session.call('get-roots-list', {}, { label: 'get-roots-list again' });
}

export async function progress(session) {
    await ready(session);
    // The last progress notification and the result may arrive in one read, and then the
    // SDK may drop the notification, so check only the recorded messages.
    await session.call('trigger-long-running-operation', { duration: 0.8, steps: 4 }, { onprogress() {}, resetTimeoutOnProgress: true });
}

export async function cancellation(session) {
    await ready(session);
    const controller = new AbortController();
    const { outcome } = await session.begin('trigger-long-running-operation', { duration: 60, steps: 1 }, { signal: controller.signal });
    controller.abort('no longer wanted');
    await outcome;
    await session.call('echo', { message: 'still here' });
}

// The stages of the research tool last as long as the client's poll interval, so the
// number of polls is random. The polls are not recorded, but the events are.
export async function tasks(session) {
    await ready(session);
    if (session.sdk.task === undefined) {
        await session.call('simulate-research-query', { topic: 'relays' }, { label: 'task tool without a task' });
        return;
    }
    for (const method of ['tasks/get', 'notifications/tasks/status', 'tasks/result']) session.transcript.polled.add(method);
    const events = [];
    await session.step('task', () =>
        session.sdk.task(session.client, { name: 'simulate-research-query', arguments: { topic: 'python', ambiguous: true } }, event => {
            if (event.type !== 'taskStatus') events.push(event);
        })
    );
    await session.step('events', () => events);
    const { taskId } = events[0]?.task ?? {};
    await session.step('finished task', () => session.sdk.tasks(session.client).getTask(taskId));
    await session.step('task list', () => session.sdk.tasks(session.client).listTasks());
    await session.step('cancel a finished task', () => session.sdk.tasks(session.client).cancelTask(taskId));
    await session.step('unknown task', () => session.sdk.tasks(session.client).getTask('nothing'));
}

/** Makes the calls for the briefing test: the first calls of a session. */
export async function briefing(session) {
    await settled(session);
    await session.list('tools');
    await session.call('echo', { message: 'first' });
    await session.call('echo', { message: 'second' });
}

/** Reads the server's environment. */
export async function environment(session) {
    await settled(session);
    await session.call('get-env', {});
}
