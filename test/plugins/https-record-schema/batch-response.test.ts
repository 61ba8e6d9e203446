import t from 'tap';
import { answerStream } from '../../../plugins/https-record-schema/batch-response.ts';

const small = { maxUnread: 10, unsent: () => 0, rest: async () => {}, closed: new AbortController().signal };

t.test('waits for a client that reads', async (t) => {
    const { stream, write, end } = answerStream({ ...small, patience: 60_000 });
    t.equal(await write('0123456789'), true);
    const second = write('abcdefghij');
    stream.setEncoding('utf8');
    t.equal(stream.read(), '0123456789');
    t.equal(await second, true);
    await end('.');
    t.equal((await stream.toArray()).join(''), 'abcdefghij.');
});

t.test('does not wait long for a client that does not read, and goes on when it does', async (t) => {
    const { stream, write, end } = answerStream({ ...small, patience: 1 });
    t.equal(await write('0123456789'), true);
    t.equal(await write('lost'), false);
    t.equal(await write('lost'), false);
    stream.setEncoding('utf8');
    t.equal(stream.read(), '0123456789');
    await new Promise(setImmediate);
    t.equal(await write('again'), true);
    await end('.');
    t.equal((await stream.toArray()).join(''), 'again.');
});

t.test('does not wait for a client that is gone', async (t) => {
    const gone = new AbortController();
    const { write } = answerStream({ ...small, closed: gone.signal, patience: 60_000 });
    await write('0123456789');
    const second = write('more');
    gone.abort();
    t.equal(await second, false);
});

t.test('breaks after its last words', async (t) => {
    const { stream, write, fail } = answerStream(small);
    await write('first ');
    const failed = fail('last', new Error('broken'));
    const read: string[] = [];
    stream.setEncoding('utf8').on('data', (text: string) => read.push(text));
    await failed;
    t.match(stream.errored, { message: 'broken' });
    t.equal(read.join(''), 'first last');
});

t.test('ends when the client has sent everything', async (t) => {
    let sent = (): void => {};
    const rest = (): Promise<void> =>
        new Promise((resolve) => {
            sent = resolve;
        });
    const { stream, end } = answerStream({ ...small, rest });
    const ended = end('.');
    stream.setEncoding('utf8');
    t.equal(stream.read(), '.');
    await new Promise(setImmediate);
    t.notOk(stream.readableEnded);
    sent();
    await ended;
    t.same(await stream.toArray(), []);
});
