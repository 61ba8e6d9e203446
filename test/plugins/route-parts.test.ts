import Hapi from '@hapi/hapi';
import t from 'tap';
import { orUnavailable } from '../../plugins/errors.ts';
import { pathId } from '../../plugins/route-parts.ts';
import { withFirst } from '../../plugins/streamed-answers.ts';

t.test('reads the ids of a path as plain decimal numbers up to the largest', (t) => {
    const max = 2_147_483_647;
    for (const [segment, id] of [
        ['0', 0],
        ['1', 1],
        ['2147483647', max],
        ['2147483648', null],
        ['9'.repeat(40), null],
        ['', null],
        ['01', null],
        ['-1', null],
        ['+1', null],
        ['1.0', null],
        ['1e3', null],
        ['0x1', null],
        [' 1', null],
        ['٣', null],
    ] as const) {
        t.equal(pathId(segment, max), id, segment);
    }

    t.equal(pathId('9007199254740991'), Number.MAX_SAFE_INTEGER);
    t.equal(pathId('9007199254740992'), null);
    t.end();
});

t.test('answers 503 without the cause when the store fails, and writes the cause to the log', async (t) => {
    const cause = new Error('db.internal is away');
    const failure = { plugin: 'example', message: 'The data cannot be read now' };
    const asked = [
        () => Promise.reject(cause),
        (): never => {
            throw cause;
        },
    ];
    for (const ask of asked) {
        const server = Hapi.server({ debug: false });
        server.route({ method: 'GET', path: '/', handler: (request) => orUnavailable(request, failure, ask) });
        const logged: object[] = [];
        server.events.on({ name: 'request', channels: 'app' }, (_request, { tags, error }) => logged.push({ tags, error }));
        const { statusCode, payload } = await server.inject('/');
        t.equal(statusCode, 503);
        t.same(JSON.parse(payload), { statusCode: 503, error: 'Service Unavailable', message: failure.message });
        t.same(logged, [{ tags: ['scanwire', 'example', 'error'], error: cause }]);
    }
});

t.test('a sequence of which the first piece was read', async (t) => {
    const sequence = (pieces: readonly (number | Error)[], ended: string[] = []): AsyncGenerator<number, void, undefined> =>
        (async function* () {
            try {
                for (const piece of pieces) {
                    if (piece instanceof Error) {
                        throw piece;
                    }

                    yield piece;
                }
            } finally {
                ended.push('ended');
            }
        })();

    t.test('gives every piece, the first included', async (t) => {
        for (const pieces of [[], [1], [1, 2, 3]]) {
            const { first, all } = await withFirst(sequence(pieces));
            t.equal(first, pieces[0]);
            const given: number[] = [];
            for await (const piece of all) {
                given.push(piece);
            }

            t.same(given, pieces);
        }
    });

    t.test('rejects with what fails at once, and gives what comes before a later failure', async (t) => {
        await t.rejects(withFirst(sequence([new Error('at once')])), { message: 'at once' });
        const iterator = (await withFirst(sequence([1, new Error('later')]))).all[Symbol.asyncIterator]();
        t.same(await iterator.next(), { done: false, value: 1 });
        await t.rejects(iterator.next(), { message: 'later' });
    });

    t.test('ends where it is left, also before anything was taken from it', async (t) => {
        const untouched: string[] = [];
        const { all } = await withFirst(sequence([1, 2], untouched));
        t.same(untouched, []);
        await all[Symbol.asyncIterator]().return?.();
        t.same(untouched, ['ended']);

        const left: string[] = [];
        for await (const _ of (await withFirst(sequence([1, 2], left))).all) {
            break;
        }

        t.same(left, ['ended']);
    });
});
