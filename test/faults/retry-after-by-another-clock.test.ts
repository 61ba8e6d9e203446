import t from 'tap';
import { egressGuard } from '../../lib/egress/guard.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { answers, receiver } from '../support/bad-receiver.ts';

const HOUR = 60 * 60_000;

/** `Retry-After` as the sender understands it that is so many milliseconds ahead of the receiver. */
async function understood(ahead: number, date: string): Promise<number | null> {
    const head = `HTTP/1.1 503 Busy\r\nRetry-After: Sat, 21 Nov 2026 09:31:00 GMT\r\n${date}Content-Length: 0\r\n\r\n`;
    const { port, close } = await receiver(answers(head));
    const clock = () => new Date(Date.parse('2026-11-21T09:30:00Z') + ahead);
    const sender = httpSender({ guard: egressGuard({ allow: ['127.0.0.0/8'] }), clock });
    const message = { exporterId: 'x', url: `http://127.0.0.1:${port}/`, trust: 'strict', headers: [], body: Buffer.from('{}') } as const;
    const { retryAfter } = await sender.send(message);
    await sender.close();
    await close();
    return retryAfter;
}

t.test('a Retry-After date is read by the clock of the receiver that wrote it', async (t) => {
    const date = 'Date: Sat, 21 Nov 2026 09:30:00 GMT\r\n';
    for (const ahead of [0, HOUR, -HOUR]) {
        t.equal(await understood(ahead, date), 60_000, `${ahead} ms ahead`);
    }
});

t.test('one without a date that can be read, by the clock of the process', async (t) => {
    t.equal(await understood(0, ''), 60_000);
    t.equal(await understood(30_000, 'Date: yesterday\r\n'), 30_000);
    t.equal(await understood(30_000, 'Date: Sat, 21 Nov 2026 09:30:00 GMT\r\nDate: Sat, 21 Nov 2026 09:30:00 GMT\r\n'), 30_000);
});
