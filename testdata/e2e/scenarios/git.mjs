// @cyanheads/git-mcp-server on the repository at E2E_REPO.
const repo = process.env.E2E_REPO;

export async function survey(session) {
    await session.list('tools');
    await session.list('resources');
    await session.list('prompts');
    await session.call('git_status', { path: repo });
    await session.call('git_log', { path: repo, maxCount: 2 });
    await session.call('git_status', {}, { label: 'git_status without a path' });
    await session.call('git_status', { path: `${repo}/none` }, { label: 'git_status of nothing' });
}

/** Makes the calls for the fill test: attache fills in a missing path. */
export async function fill(session) {
    await session.list('tools');
    await session.call('git_status', {});
    await session.call('git_status', { path: repo }, { label: 'git_status with the path' });
    // The tool's schema allows no other argument, so a filled path would be refused.
    await session.call('git_wrapup_instructions', { acknowledgement: 'Y' }, { label: 'a tool that has no path' });
}

/** Calls many tools once, each in its own conversation, so that each result is the first. */
export async function structured(session) {
    await session.list('tools');
    const call = (name, args, label = name) => session.call(name, { path: repo, ...args }, { label, meta: { threadId: `git-${label}` } });
    await call('git_status', {});
    await call('git_log', { maxCount: 2 });
    await call('git_diff', {});
    await call('git_show', { object: 'HEAD' });
    await call('git_blame', { filePath: 'tracked.txt' });
    await call('git_branch', { mode: 'list' });
    await call('git_remote', { mode: 'list' });
    await call('git_stash', { mode: 'list' });
    await call('git_tag', { mode: 'list' });
    await call('git_worktree', { mode: 'list' });
    await call('git_reflog', {});
    await call('git_clean', { dryRun: true, force: true });
    await call('git_add', { paths: ['tracked.txt'] });
    await call('git_reset', { mode: 'mixed' });
    await call('git_checkout', { target: 'HEAD' });
    await call('git_changelog_analyze', { reviewTypes: ['features'] });
    await session.call('git_set_working_dir', { path: repo }, { meta: { threadId: 'git-set' } });
    await session.call('git_wrapup_instructions', { acknowledgement: 'Y' }, { meta: { threadId: 'git-wrapup' } });
    await session.call('git_clear_working_dir', { confirm: 'Y' }, { meta: { threadId: 'git-clear' } });
}
