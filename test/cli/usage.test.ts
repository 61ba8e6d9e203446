import { join } from 'node:path';
import t from 'tap';
import { type Ran, scanwire, scanwireEach } from '../support/scanwire.ts';

t.test('prints help and version, and leaves with 0', async (t) => {
    const helps = [['--help'], ['keys', '--help'], ['exporters', 'create', '--help']].map((args) => ({ args }));
    for (const { code, stdout, stderr } of [...(await scanwireEach(helps)), await scanwire(['--help'])]) {
        t.equal(code, 0);
        t.match(stdout, /^Usage: scanwire/);
        t.equal(stderr, '');
    }

    t.match(await scanwire(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+\n$/ });
});

t.test('leaves with 2 after wrong usage, and says what was wrong', async (t) => {
    const cases: [string[], RegExp][] = [
        [[], /Usage/],
        [['keys'], /Usage/],
        [['nothing'], /^scanwire: unknown command 'nothing'\n$/],
        [['kyes', 'list'], /^scanwire: unknown command 'kyes' \(Did you mean keys\?\)\n$/],
        [['keys', 'create'], /missing required argument 'name'/],
        [['keys', 'create', 'a', 'b'], /too many arguments/],
        [['keys', 'list', '--wrong'], /unknown option '--wrong'/],
        [['exporters', 'create'], /required option '--url <url>'/],
        [['exporters', 'create', '--url', 'http://x.test', '--trust', 'none'], /--trust.*strict, self-signed, all/],
        [['serve', '--port', '70000'], /--port.*whole number from 0 to 65535/],
        [['serve', '--port', '1e3'], /--port.*whole number/],
        [['deliveries', 'list', '--state', 'lost'], /--state/],
        [['worker'], /required option '--collector <name>'/],
        [['listen', '--port', '0'], /required option '--secret-file <file>'/],
        [['deliveries', 'replay'], /Replay needs one of/],
        [['exporters', 'create', '--url', 'http://x.test', '--secret-file', '-', '--header-file', '-'], /Only one of/],
        [['exporters', 'update', 'an-id'], /Nothing to change/],
        [['hosts', 'list', '--state', 'foo'], /--state.*alive, down, unknown/],
        [['serve', '--max-connections', '1', '--max-per-address', '2'], /must not exceed/],
        [['keys', 'list', '--data', ''], /--data.*It must name a folder/],
        [['doctor', '--data', ''], /--data.*It must name a folder/],
        [['hosts', 'expire', '--not-seen', '2026-11-31'], /--not-seen/],
        [['hosts', 'expire', '--not-seen', '2026-11-31T00:00Z'], /--not-seen/],
        [['keys', 'create', 'a', '--expires', '2027-02-31'], /--expires/],
        [['deliveries', 'list', '--since', '2026-02-29T00:00:00+01:00'], /--since/],
        [['deliveries', 'replay', '--exporter', 'x', '--failed-since', '2026-04-31'], /--failed-since/],
    ];
    const ran = await scanwireEach(cases.map(([args]) => ({ args })));
    for (const [index, [args, message]] of cases.entries()) {
        const { code, stdout, stderr } = ran[index] as Ran;
        t.equal(code, 2, args.join(' '));
        t.equal(stdout, '');
        t.match(stderr, message);
        t.notMatch(stderr, /\bat .*:\d+:\d+/);
    }
});

t.test('says wrong usage as one JSON document with --json', async (t) => {
    for (const args of [
        ['keys', 'create', '--json'],
        ['keys', '--json'],
        ['exporters', 'create', '--json'],
    ]) {
        const { code, stdout, stderr } = await scanwire(args);
        t.equal(code, 2);
        t.equal(stdout, '');
        t.match(JSON.parse(stderr), { error: { code: 'USAGE', field: null, message: String } });
    }
});

t.test('leaves with 1 after a refusal, in one line that names field and reason', async (t) => {
    const data = `${t.testdir()}/none`;
    const cases: [string[], RegExp, object][] = [
        [['keys', 'list', '--data', data], /^scanwire: There is no data folder at .*--data.*\n$/, { code: 'NOT_FOUND', field: 'data' }],
        [
            ['events', 'publish', 'idr_investigation_created', 'fixtures/events/investigation.json', '--data', data],
            /^scanwire: There is no data folder at .*--data.*\n$/,
            { code: 'NOT_FOUND', field: 'data' },
        ],
        [
            ['import', `${data}/scan.xml`, '--data', data],
            /^scanwire: Cannot read .*no such file.*\n$/,
            { code: 'INVALID_INPUT', field: 'file' },
        ],
        [
            ['records', 'check', `${data}/records.jsonl`, '--data', data],
            /^scanwire: Cannot read .*no such file.*\n$/,
            { code: 'INVALID_INPUT', field: 'file' },
        ],
        [
            ['exporters', 'create', '--url', 'http://x.test', '--secret-env', 'NO_SUCH_VARIABLE', '--data', data],
            /^scanwire: There is nothing in NO_SUCH_VARIABLE.*\n$/,
            { code: 'INVALID_INPUT', field: 'secret-env' },
        ],
        [
            ['listen', '--port', '0', '--secret-file', join(t.testdir({ secret: 'whsec_short\n' }), 'secret')],
            /^scanwire: Secret must go on with base64 .*\n$/,
            { code: 'INVALID_INPUT', field: 'secret' },
        ],
        [
            ['worker', '--collector', 'c', '--data', data],
            /^scanwire: DATABASE_URL is not set.*\n$/,
            { code: 'MISCONFIGURED', field: 'DATABASE_URL' },
        ],
    ];
    const [plain, asJson] = await Promise.all([
        scanwireEach(cases.map(([args]) => ({ args }))),
        scanwireEach(cases.map(([args]) => ({ args: [...args, '--json'] }))),
    ]);
    for (const [index, [args, message, error]] of cases.entries()) {
        const said = plain[index] as Ran;
        t.equal(said.code, 1, args.join(' '));
        t.equal(said.stdout, '');
        t.match(said.stderr, message);
        t.notMatch(said.stderr, 's3cret');
        t.match(JSON.parse((asJson[index] as Ran).stderr), { error });
    }
});

t.test('refuses what does not belong to the way of a replay, before anything is asked', async (t) => {
    const cases: [args: string[], option: string, way: string][] = [
        [['an-id', '--dry-run'], 'dry-run', 'the id of a delivery'],
        [['an-id', '--rate', '5/s'], 'rate', 'the id of a delivery'],
        [['an-id', '--exporter', 'x'], 'exporter', 'the id of a delivery'],
        [['an-id', '--failed-since', '1h'], 'failed-since', 'the id of a delivery'],
        [['an-id', '--held'], 'held', 'the id of a delivery'],
        [['an-id', '--cancel', 'another-id'], 'cancel', 'the id of a delivery'],
        [['--cancel', 'an-id', '--dry-run'], 'dry-run', '--cancel'],
        [['--cancel', 'an-id', '--rate', '5/s'], 'rate', '--cancel'],
        [['--cancel', 'an-id', '--exporter', 'x', '--held'], 'exporter', '--cancel'],
        [['--cancel', 'an-id', '--held'], 'held', '--cancel'],
        [['--cancel', 'an-id', '--failed-since', '1h'], 'failed-since', '--cancel'],
    ];
    const data = ['--data', `${t.testdir()}/none`, '--json'];
    const ran = await scanwireEach(cases.map(([args]) => ({ args: ['deliveries', 'replay', ...args, ...data] })));
    for (const [index, [args, option, way]] of cases.entries()) {
        const { code, stderr } = ran[index] as Ran;
        t.equal(code, 2, args.join(' '));
        const error = { code: 'INVALID_INPUT', field: option, message: `--${option} does not go with ${way}` };
        t.same(JSON.parse(stderr), { error });
    }
});

t.test('keeps quiet when nobody reads its output any more', async (t) => {
    const { spawnSync } = await import('node:child_process');
    const entry = new URL('../../cli/scanwire.js', import.meta.url).pathname;
    const { stderr, stdout } = spawnSync('sh', ['-c', `"${process.execPath}" "${entry}" --help | true; echo done`], { encoding: 'utf8' });
    t.equal(stderr, '');
    t.equal(stdout, 'done\n');
});
